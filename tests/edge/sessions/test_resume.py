import pytest
from tests.edge.sessions.test_outbox import Bench, primed

from edgewise.edge.sessions.outbox import Outbox
from edgewise.wire import codec, frames


def resumed(to, epoch=0, **policy):
    bench = Bench(**policy)
    for v in range(6):
        bench.publish("A", {"v": v})
    bench.outbox.take(10**9, 0)
    other = Bench()
    topic = bench.tree.get("A")
    subscription = other.outbox.attach(topic, 1)
    other.outbox.resume(subscription, epoch, to)
    other.view.take(frames.TopicFrame(topic.alias, "A"))
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
    assert not outbox.control.overflowed
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
    outbox.detach(topic, frames.RemoveReason.REMOVED)
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


def test_a_client_that_missed_nothing_while_a_writer_started_anew_gets_nothing():
    bench, client = Bench(recovery="precise", keep=10), Bench()
    bench.publish("A", {"v": 1})
    topic = bench.tree.get("A")
    topic.head.epoch = 2
    client.outbox.resume(client.outbox.attach(topic, 1), 1, topic.head.to)
    name, *rest = client.outbox.take(10**9, 0)
    assert codec.decode_from_server(name).path == "A"
    assert rest == []
    client.view.take(frames.TopicFrame(topic.alias, "A"))
    bench.publish("A", {"v": 2})
    client.outbox.offer(topic.subscriptions[client.outbox], topic.head, 0)
    (update,) = client.flush()
    assert (update.value, update.meta.how.name) == ({"v": 2}, "UPDATE")


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
    subscription = bench.tree.get("A").subscriptions[bench.outbox]
    bench.outbox.resume(subscription, stopped.epoch, stopped.to)
    assert [u.value["v"] for u in bench.flush()] == [3, 4, 5, 6, 7]
    bench.publish("A", {"v": 8})
    (update,) = bench.flush()
    assert (update.value["v"], update.meta.how.name) == (8, "UPDATE")
