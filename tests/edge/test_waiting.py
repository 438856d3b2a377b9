import pytest
from tests.edge.test_conflate import Bench, primed

from edgewise.edge.conflate import Outbox
from edgewise.edge.slot import Want
from edgewise.wire import codec, frames
from edgewise.wire.codes import Code
from edgewise.wire.view import Stopped, Update


def test_a_full_queue_pauses_the_topic_and_says_so_after_what_was_queued():
    bench = primed("A", conflate="off", queue_max=2)
    for value in range(1, 6):
        bench.publish("A", {"v": value})
    out = bench.flush()
    assert [u.value["v"] for u in out if isinstance(u, Update)] == [1, 2]
    assert out[-1] == Stopped("A", 1, Code.QUEUE_FULL, 0, 3)
    bench.publish("A", {"v": 6})
    assert bench.flush() == []


def test_detaching_drops_what_is_pending_and_tells_only_what_was_told():
    bench = primed("A", conflate="off")
    topic = bench.tree.get("A")
    bench.publish("A", {"v": 1})
    bench.outbox.detach(topic, frames.Gone.REMOVED)
    assert [type(e).__name__ for e in bench.flush()] == ["Removed"]
    fresh = Bench()
    fresh.publish("A", {"v": 1})
    fresh.outbox.detach(fresh.tree.get("A"), frames.Gone.REMOVED)
    assert fresh.outbox.take(1000, 0) == []


def test_answers_that_are_not_read_overflow():
    outbox = Outbox(10, 100, 10)
    outbox.say(b"x" * 101)
    assert outbox.overflowed


def test_a_session_sees_a_bounded_number_of_topics_and_is_told_once():
    bench = Bench()
    bench.outbox.topics_max = 1
    for name in "ABC":
        topic = bench.tree.create(name, bench.policy)
        topic.change(0, 1, 1, {})
        bench.outbox.attach(topic, 5)
    decoded = [codec.decode_from_server(f) for f in bench.outbox.take(10_000, 0)]
    errors = [f for f in decoded if isinstance(f, frames.Error)]
    assert [(e.id, e.code) for e in errors] == [(5, Code.TOO_MANY_TOPICS)]
    assert sum(isinstance(f, frames.Value) for f in decoded) == 1


def resumed(to, epoch=0, **policy):
    bench = Bench(**policy)
    for v in range(6):
        bench.publish("A", {"v": v})
    bench.outbox.take(10**9, 0)
    other = Bench()
    topic = bench.tree.get("A")
    slot = other.outbox.attach(topic, 1)
    other.outbox.resume(slot, epoch, to)
    other.view.take(frames.Topic(topic.alias, "A"))
    return other.flush()


def test_who_missed_nothing_gets_nothing_but_the_name():
    assert resumed(6) == []


def test_who_missed_nothing_still_hears_that_the_source_is_silent():
    bench, outbox = Bench(), Outbox(10, 100, 100)
    bench.publish("A", {"v": 1})
    topic = bench.tree.get("A")
    topic.stale_us = 7
    outbox.resume(outbox.attach(topic, 1), 0, 1)
    name, stale = map(codec.decode_from_server, outbox.take(10_000, 0))
    assert (name.path, stale) == ("A", frames.Stale(topic.alias, 7))
    assert outbox.idle


def test_who_comes_back_to_much_that_did_not_change_has_not_stopped_reading():
    bench, outbox = Bench(), Outbox(10, 200, 100)
    names = [f"a/{n}" for n in range(100)]
    for name in names:
        bench.publish(name, {"v": 1})
        topic = bench.tree.get(name)
        outbox.resume(outbox.attach(topic, 1), 0, topic.head.to)
    assert not outbox.overflowed
    heard = []
    while outbox.ready(0):
        written = outbox.take(300, 0)
        assert sum(map(len, written)) < 400
        heard += [codec.decode_from_server(data).path for data in written]
    assert heard == names


@pytest.mark.parametrize("to", [1, 2])
def test_who_comes_back_to_what_goes_is_told(to):
    bench, outbox = Bench(), Outbox(10, 1000, 100)
    bench.publish("A", {"v": 1})
    bench.publish("A", {"v": 2})
    topic = bench.tree.get("A")
    outbox.resume(outbox.attach(topic, 1), 0, to)
    outbox.detach(topic, frames.Gone.REMOVED)
    name, removed = map(codec.decode_from_server, outbox.take(10_000, 0))
    assert (name.path, removed) == ("A", frames.Remove(topic.alias))
    assert outbox.idle


def test_a_precise_topic_replays_exactly():
    out = resumed(2, recovery="precise", keep=10)
    assert [(u.value["v"], u.meta.how.name, u.meta.start, u.meta.to) for u in out] == [
        (v, "REPLAY", v, v + 1) for v in range(2, 6)
    ]


def test_a_precise_topic_that_forgot_says_gap():
    (update,) = resumed(2, recovery="precise", keep=2)
    assert (update.value["v"], update.meta.how.name, update.meta.start) == (5, "GAP", 2)


def test_a_conflated_topic_catches_up_with_its_state():
    (update,) = resumed(2)
    assert (update.value["v"], update.meta.how.name, update.meta.start) == (5, "CATCH_UP", 2)
    (total,) = resumed(2, conflate="merge(sum)")
    assert (total.value["v"], total.meta.how.name) == (15, "CATCH_UP")


def test_a_position_from_another_life_is_a_gap():
    (update,) = resumed(99)
    assert update.meta.how.name == "GAP"
    (update,) = resumed(3, epoch=7, recovery="precise", keep=10)
    assert update.meta.how.name == "GAP"


def test_a_paused_topic_resumes_without_loss_from_history():
    bench = primed("A", conflate="off", queue_max=2, keep=100)
    for value in range(1, 8):
        bench.publish("A", {"v": value})
    *_, stopped = bench.flush()
    slot = bench.tree.get("A").slots[bench.outbox]
    bench.outbox.resume(slot, stopped.epoch, stopped.to)
    assert [u.value["v"] for u in bench.flush()] == [3, 4, 5, 6, 7]
    bench.publish("A", {"v": 8})
    (update,) = bench.flush()
    assert (update.value["v"], update.meta.how.name) == (8, "UPDATE")


def test_what_was_overtaken_is_counted_while_it_waits_and_after():
    bench = primed("AB")
    bench.tree.get("B").slots[bench.outbox].want(1, Want(gap_us=1000))
    bench.publish("A", {"v": 1})
    assert (bench.outbox.conflated, bench.outbox.behind) == (0, False)
    bench.publish("A", {"v": 2})
    bench.publish("A", {"v": 3})
    assert (bench.outbox.conflated, bench.outbox.behind) == (2, True)
    bench.flush()
    assert (bench.outbox.conflated, bench.outbox.behind) == (2, False)
    for value in range(4):
        bench.publish("B", {"v": value})
        bench.flush()
    assert bench.outbox.conflated == 4
    assert [slot.topic.path for slot in bench.outbox.waiting()] == []
