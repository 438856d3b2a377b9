"""A result stream in a real log contract, its feed, and the edge's tree."""

import asyncio
import threading
import time

import pytest

from edgewise.edge.server.log_feed import LogFeed, RowMapper, _decode_object, wait_caught_up
from edgewise.edge.server.server import Edge
from edgewise.edge.sessions.outbox import Outbox
from edgewise.edge.topics.topic_sink import TopicSink
from edgewise.errors import SetupError
from edgewise.event.arrow import record_batch
from edgewise.event.event import EventKind
from edgewise.event.schema import Schema
from edgewise.log.memory import MemoryLog
from edgewise.wire import codec, frames

WAIT_S = 10
SCHEMA = Schema.of("alerts", ip="string", n="long", extra="object")
SINK = TopicSink.parse({"path": "alerts/{ip}"})


def rows(writer, *triples, kind=EventKind.CURRENT, at=None):
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
    feed = LogFeed(edge, log.reader(), SINK)
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
    feed = LogFeed(edge, log.reader(), TopicSink.parse({"path": "alerts/{ip}", "ttl": "1 hour"}))
    feed.start()
    assert feed.caught_up.wait(WAIT_S)
    paths = {t.path for t in edge.fanout.tree if not t.path.startswith("$")}
    assert paths == {"alerts/a", "alerts/b"}
    feed.stop()
    short = LogFeed(edge, log.reader(), TopicSink.parse({"path": "x/{ip}"}), history_rows_max=1)
    short.start()
    assert short.caught_up.wait(WAIT_S)
    assert edge.value("x/a") is None
    assert edge.value("x/b") is not None
    short.stop()


def test_a_series_replays_its_history_in_order(edge):
    log = MemoryLog()
    writer = log.writer(SCHEMA)
    rows(writer, ("a", 1), ("a", 2), ("a", 3))
    sink = TopicSink.parse({"path": "t/{ip}", "kind": "series", "keep": "2"})
    feed = LogFeed(edge, log.reader(), sink)
    feed.start()
    assert feed.caught_up.wait(WAIT_S)
    assert [e[2]["n"] for e in edge.value("t/a")] == [2, 3]
    feed.stop()


def test_a_blob_is_the_bytes_of_one_attribute(edge):
    log = MemoryLog()
    rows(log.writer(SCHEMA), ("ä", 7))
    for body, wanted in (("ip", "ä".encode()), ("n", b"7"), ("extra", b'{"a":[1]}')):
        sink = TopicSink.parse({"path": f"by/{body}", "kind": "blob", "body": f"{{{body}}}"})
        feed = LogFeed(edge, log.reader(), sink)
        feed.start()
        until(feed, 1)
        feed.stop()
        assert edge.value(f"by/{body}") == wanted


def test_expired_rows_are_no_news_where_the_sink_does_not_take_them():
    log = MemoryLog()
    writer = log.writer(SCHEMA)
    rows(writer, ("a", 1), kind=EventKind.EXPIRED)
    reader = log.reader()
    (batch,) = reader.read(0, 1)
    assert list(RowMapper(reader.schema, SINK).publications(batch, 1)) == []


def test_a_path_that_names_a_missing_attribute_is_refused():
    log = MemoryLog()
    log.writer(SCHEMA)
    with pytest.raises(SetupError, match=r"'city'.*ip, n, extra"):
        RowMapper(log.reader().schema, TopicSink.parse({"path": "alerts/{city}"}))


def test_a_merge_that_does_not_fit_the_recovery_is_refused():
    log = MemoryLog()
    log.writer(SCHEMA)
    sink = TopicSink.parse({"path": "a/{ip}", "conflate": "merge(sum)", "recovery": "rollback"})
    with pytest.raises(SetupError, match="idempotent"):
        LogFeed(Edge(), log.reader(), sink)


def test_a_row_without_a_topic_does_not_hold_up_the_others(edge, caplog):
    log = MemoryLog()
    writer = log.writer(SCHEMA)
    rows(writer, ("a", 1), ("x" * 5000, 1), ("b", 1))
    feed = LogFeed(edge, log.reader(), TopicSink.parse({"path": "t/{ip}"}))
    feed.start()
    assert feed.caught_up.wait(WAIT_S)
    assert edge.value("t/a")
    assert edge.value("t/b")
    assert edge.stats.unpublishable == 1
    assert "longer than" in caplog.text
    feed.stop()


def test_objects_that_no_frame_can_carry_stay_text():
    assert _decode_object('{"a": 1}') == {"a": 1}
    assert _decode_object(str(2**70)) == str(2**70)
    assert _decode_object("not json") == "not json"
    assert _decode_object(None) is None


def read_all(edge, loop, outbox, count):
    """Updates of an outbox, taken by the thread of the edge, until there are so many."""

    async def take():
        return [codec.decode_from_server(data) for data in outbox.take(16_384, 0)]

    seen, end = [], time.monotonic() + WAIT_S
    while len(seen) < count and time.monotonic() < end:
        frames_out = asyncio.run_coroutine_threadsafe(take(), loop).result(WAIT_S)
        seen += [frame for frame in frames_out if isinstance(frame, frames.Value)]
    return seen


def test_a_client_that_missed_more_than_is_remembered_gets_every_row_from_the_log(edge):
    log = MemoryLog()
    writer = log.writer(SCHEMA)
    rows(writer, ("a", 0), ("b", 0))
    for first in range(1, 3001, 100):
        rows(writer, *(("a", n) for n in range(first, first + 100)), ("b", first))
    sink = TopicSink.parse({"path": "alerts/{ip}", "recovery": "precise"})
    feed = LogFeed(edge, log.reader(), sink)
    feed.start()
    assert feed.caught_up.wait(WAIT_S)
    outbox, loop = Outbox(1024, 100_000, 10), edge._loop

    async def come_back():
        edge.fanout.subscribe(outbox, 1, ("alerts", "a"), have={"alerts/a": (1, 1)})

    asyncio.run_coroutine_threadsafe(come_back(), loop).result(WAIT_S)
    seen = read_all(edge, loop, outbox, 3000)
    assert [update.value["n"] for update in seen] == list(range(1, 3001))
    assert {update.how for update in seen} == {frames.How.REPLAY}
    assert [update.start for update in seen[1:]] == [update.to for update in seen[:-1]]
    feed.stop()


def test_an_edge_waits_until_its_feeds_have_caught_up():
    log = MemoryLog()
    writer = log.writer(SCHEMA)
    rows(writer, *(("a", n) for n in range(5000)))

    async def start():
        edge = Edge()
        await edge.attach_loop()
        sink = TopicSink.parse({"path": "alerts/{ip}", "recovery": "precise"})
        feed = LogFeed(edge, log.reader(), sink)
        feed.start()
        await wait_caught_up([feed])
        value = edge.value("alerts/a")
        feed.stop()
        await edge.stop()
        return value

    assert asyncio.run(start())["n"] == 4999


def feed_rows(edge, sink, *steps, history=False):
    """The topics after these rows, each with its kind."""
    log = MemoryLog()
    writer = log.writer(SCHEMA)
    feed = LogFeed(edge, log.reader(), TopicSink.parse({"path": "w/{ip}", **sink}))
    if not history:
        feed.start()
        assert feed.caught_up.wait(WAIT_S)
    for ip, n, kind in steps:
        rows(writer, (ip, n), kind=kind)
    if history:
        feed.start()
    until(feed, len(steps))
    feed.stop()
    return {t.path: edge.value(t.path) for t in edge.fanout.tree if t.path.startswith("w/")}


@pytest.mark.parametrize("history", [False, True])
def test_an_expired_row_is_the_new_value_where_a_query_aggregates(edge, history):
    steps = [("a", n, EventKind.CURRENT) for n in (1, 2, 3)]
    steps += [("a", n, EventKind.EXPIRED) for n in (2, 1, 0)]
    shown = feed_rows(edge, {"expired": "update"}, *steps, history=history)
    assert shown["w/a"]["n"] == 0


@pytest.mark.parametrize("history", [False, True])
def test_an_expired_row_takes_the_topic_away_that_shows_it_and_no_other(edge, history):
    current, expired = EventKind.CURRENT, EventKind.EXPIRED
    steps = [("a", 1, current), ("a", 2, current), ("a", 1, expired)]
    steps += [("b", 1, current), ("b", 1, expired)]
    shown = feed_rows(edge, {"expired": "remove"}, *steps, history=history)
    assert {path: value["n"] for path, value in shown.items()} == {"w/a": 2}


def test_an_expired_row_leaves_its_table(edge):
    sink = {"path": "w/t", "kind": "table", "key": "{ip}", "expired": "remove"}
    current, expired = EventKind.CURRENT, EventKind.EXPIRED
    steps = [("a", 1, current), ("b", 1, current), ("b", 2, current)]
    steps += [("a", 1, expired), ("b", 1, expired)]
    shown = feed_rows(edge, sink, *steps)
    assert {key: row["n"] for key, row in shown["w/t"].items()} == {"b": 2}
