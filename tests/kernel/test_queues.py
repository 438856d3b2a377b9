"""A queue is a deque that knows what a store has of it."""

from collections import deque

from edgewise.kernel.queues import Queue


def test_a_queue_is_a_deque_with_nothing_stored():
    queue = Queue([1, 2])
    queue.append(3)
    assert queue.popleft() == 1
    assert queue == deque([2, 3])
    assert queue.stored is None


def test_a_queue_of_parts_skips_what_left_and_knows_its_last_row():
    queue = Queue.of_parts(7, 3, 5, 2, [["a", "b", "c"], ["d"]])
    assert list(queue) == ["c", "d"]
    assert queue.stored.count() == 2
    assert queue.stored.last is queue[-1]
    assert (queue.stored.first, queue.stored.end, queue.stored.name) == (3, 5, 7)
