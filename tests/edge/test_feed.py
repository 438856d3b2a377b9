"""A result stream in a real log contract, its feed, and the edge's tree."""

import asyncio
import threading
import time

import pytest

from edgewise.edge.feed import Feed, Rows, _object
from edgewise.edge.server import Edge
from edgewise.edge.sink import TopicSink
from edgewise.errors import SetupError
from edgewise.event.arrow import record_batch
from edgewise.event.event import Kind
from edgewise.event.schema import Schema
from edgewise.log.memory import MemoryLog

WAIT_S = 10
SCHEMA = Schema.of("alerts", ip="string", n="long", extra="object")
SINK = TopicSink.of({"path": "alerts/{ip}"})


def rows(writer, *triples, kind=Kind.CURRENT, at=None):
    ips, counts = [t[0] for t in triples], [t[1] for t in triples]
    times = [at or time.time_ns() // 1000] * len(triples)
    batch = record_batch(
        writer.schema,
        [1] * len(triples),
        times,
        [int(kind)] * len(triples),
        [ips, counts, ['{"a":[1]}'] * len(triples)],
    )
    writer.append(batch)


@pytest.fixture
def edge():
    """An edge on its own loop and thread, as the node runs it."""
    loop, started = asyncio.new_event_loop(), threading.Event()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    loop.call_soon_threadsafe(started.set)
    started.wait(WAIT_S)
    edge = Edge()
    asyncio.run_coroutine_threadsafe(edge.start(), loop).result(WAIT_S)
    yield edge
    asyncio.run_coroutine_threadsafe(edge.stop(), loop).result(WAIT_S)
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


def until(feed, offset):
    end = time.monotonic() + WAIT_S
    while feed.offset < offset and time.monotonic() < end:
        feed.caught_up.wait(0.001)
    assert feed.offset >= offset


def test_history_gives_current_values_then_the_tail_follows(edge):
    log = MemoryLog()
    writer = log.writer(SCHEMA)
    rows(writer, ("a", 1), ("b", 1), ("a", 2))
    feed = Feed(edge, log.reader(), SINK)
    feed.start()
    assert feed.caught_up.wait(WAIT_S)
    assert edge.value("alerts/a") == {"ip": "a", "n": 2, "extra": {"a": [1]}}
    assert feed.rows == 2
    rows(writer, ("b", 5), ("c/d", 6))
    until(feed, 5)
    assert (edge.value("alerts/b")["n"], edge.value("alerts/c%2Fd")["n"]) == (5, 6)
    head = edge.fanout.tree.get("alerts/b").head
    assert (head.epoch, head.to) == (1, 4)
    feed.stop()
    assert feed.error is None


def test_history_is_bounded_and_what_outlived_its_ttl_stays_away(edge):
    log = MemoryLog()
    writer = log.writer(SCHEMA)
    rows(writer, ("old", 1), at=1)
    rows(writer, ("a", 1), ("b", 1))
    feed = Feed(edge, log.reader(), TopicSink.of({"path": "alerts/{ip}", "ttl": "1 hour"}))
    feed.start()
    assert feed.caught_up.wait(WAIT_S)
    paths = {t.path for t in edge.fanout.tree if not t.path.startswith("$")}
    assert paths == {"alerts/a", "alerts/b"}
    feed.stop()
    short = Feed(edge, log.reader(), TopicSink.of({"path": "x/{ip}"}), history_rows_max=1)
    short.start()
    assert short.caught_up.wait(WAIT_S)
    assert edge.value("x/a") is None
    assert edge.value("x/b") is not None
    short.stop()


def test_a_series_replays_its_history_in_order(edge):
    log = MemoryLog()
    writer = log.writer(SCHEMA)
    rows(writer, ("a", 1), ("a", 2), ("a", 3))
    sink = TopicSink.of({"path": "t/{ip}", "kind": "series", "keep": "2"})
    feed = Feed(edge, log.reader(), sink)
    feed.start()
    assert feed.caught_up.wait(WAIT_S)
    assert [e[2]["n"] for e in edge.value("t/a")] == [2, 3]
    feed.stop()


def test_a_blob_is_the_bytes_of_one_attribute(edge):
    log = MemoryLog()
    rows(log.writer(SCHEMA), ("ä", 7))
    for body, wanted in (("ip", "ä".encode()), ("n", b"7"), ("extra", b'{"a":[1]}')):
        sink = TopicSink.of({"path": f"by/{body}", "kind": "blob", "body": f"{{{body}}}"})
        feed = Feed(edge, log.reader(), sink)
        feed.start()
        until(feed, 1)
        feed.stop()
        assert edge.value(f"by/{body}") == wanted


def test_expired_rows_and_marks_are_no_news():
    log = MemoryLog()
    writer = log.writer(SCHEMA)
    rows(writer, ("a", 1), kind=Kind.EXPIRED)
    reader = log.reader()
    (batch,) = reader.read(0, 1)
    assert list(Rows(reader.schema, SINK).publications(batch, 1)) == []


def test_a_path_that_names_a_missing_attribute_is_refused():
    log = MemoryLog()
    log.writer(SCHEMA)
    with pytest.raises(SetupError, match=r"'city'.*ip, n, extra"):
        Rows(log.reader().schema, TopicSink.of({"path": "alerts/{city}"}))


def test_a_merge_that_does_not_fit_the_recovery_is_refused():
    log = MemoryLog()
    log.writer(SCHEMA)
    sink = TopicSink.of({"path": "a/{ip}", "conflate": "merge(sum)", "recovery": "rollback"})
    with pytest.raises(SetupError, match="idempotent"):
        Feed(Edge(), log.reader(), sink)


def test_a_row_without_a_topic_does_not_hold_up_the_others(edge, caplog):
    log = MemoryLog()
    writer = log.writer(SCHEMA)
    rows(writer, ("a", 1), ("x" * 5000, 1), ("b", 1))
    feed = Feed(edge, log.reader(), TopicSink.of({"path": "t/{ip}"}))
    feed.start()
    assert feed.caught_up.wait(WAIT_S)
    assert edge.value("t/a")
    assert edge.value("t/b")
    assert edge.stats.unpublishable == 1
    assert "longer than" in caplog.text
    feed.stop()


def test_objects_that_no_frame_can_carry_stay_text():
    assert _object('{"a": 1}') == {"a": 1}
    assert _object(str(2**70)) == str(2**70)
    assert _object("not json") == "not json"
    assert _object(None) is None
