from edgewise.edge.sessions.control import ControlQueue
from edgewise.edge.sessions.outbox import Outbox


def test_answers_that_are_not_read_overflow():
    outbox = Outbox(10, 100, 10)
    outbox.control.add(b"x" * 101)
    assert outbox.control.overflowed


def test_answers_are_taken_as_far_as_they_fit_and_in_order():
    control, out = ControlQueue(1000), []
    for number in range(5):
        control.add(bytes([number]) * 10)
    assert control.take(25, out) == 30
    assert control.bytes == 20
    assert control.take(10**9, out) == 20
    assert [frame[0] for frame in out] == [0, 1, 2, 3, 4]
    assert not control.overflowed
