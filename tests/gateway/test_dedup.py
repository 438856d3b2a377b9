import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.memory_log import MemoryLog as Slow

from edgewise.errors import LogFull
from edgewise.event.arrow import record_batch, to_arrow
from edgewise.event.clock import ManualClock
from edgewise.event.schema import Schema
from edgewise.gateway import dedup as module
from edgewise.gateway.admit import Admission, AdmissionLimits, AdmittedEvents
from edgewise.gateway.append_queue import AppendQueue
from edgewise.gateway.connectors import build_ingest_config, check_source, parse_source
from edgewise.gateway.dedup import DedupWriter, PartlyAppended, RecentIds, read_last_ids
from edgewise.gateway.source_writer import SourceWriter
from edgewise.gateway.spec import BadSpec, DedupSpec, MapSpec, SourceSpec, dedup_by_stream
from edgewise.log.memory import MemoryLog
from edgewise.plan.annotations import Annotation

SCHEMA = Schema.of("S", id="string", v="int")
KEYS = st.one_of(st.none(), st.sampled_from("abcdefgh"))
BATCHES = st.lists(st.lists(KEYS, max_size=6), max_size=12)


def rows(keys, first=0):
    count = len(keys)
    values = [list(keys), list(range(first, first + count))]
    return record_batch(to_arrow(SCHEMA), [0] * count, [0] * count, [0] * count, values)


def ids(place):
    return [k for b in place.batches for k in b.rows.column("id").to_pylist()]


def opened(place, bound):
    writer = place.writer(SCHEMA)
    return DedupWriter.open(writer, place.reader(), DedupSpec("id", bound))


@given(BATCHES, st.integers(1, 10))
def test_no_id_is_lost_and_none_of_the_last_ones_comes_twice(batches, bound):
    place = MemoryLog()
    writer = opened(place, bound)
    for batch in batches:
        before = ids(place)
        got = writer.append(rows(batch))
        now = ids(place)
        taken = now[len(before) :]
        assert (got.first, got.end) == (len(before), len(now))
        known = list(dict.fromkeys(k for k in reversed(before) if k is not None))[:bound]
        assert not set(taken) & set(known), "dropped when it is among the last"
        assert set(batch) <= {*now}, "an id that the log does not have is never dropped"
        assert taken.count(None) == batch.count(None), "no id, no double"
        assert [k for k in batch if k in taken and k is not None][:1] == [
            k for k in taken if k is not None
        ][:1], "in order"


@given(BATCHES, BATCHES, st.integers(1, 10), st.integers(1, 5))
def test_a_restart_forgets_nothing_that_the_log_still_has(first, second, bound, chunk):
    going, stopped = MemoryLog(), MemoryLog()
    writer, early = opened(going, bound), opened(stopped, bound)
    for batch in first:
        writer.append(rows(batch))
        early.append(rows(batch))
    early.close()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "REFILL_ROWS", chunk)
        late = opened(stopped, bound)
    assert list(late._recent._keys) == list(writer._recent._keys)
    for batch in second:
        writer.append(rows(batch))
        late.append(rows(batch))
    assert ids(going) == ids(stopped)


@given(st.lists(st.lists(st.integers(), max_size=8)), st.integers(1, 6))
def test_the_memory_keeps_the_last_ids_and_no_more(batches, bound):
    recent = RecentIds(bound)
    came = []
    for batch in batches:
        fresh = [k for k in dict.fromkeys(batch) if k not in recent]
        recent.add(fresh)
        came += fresh
        assert len(recent) <= bound
        assert all(k in recent for k in came[-bound:])


def test_marks_and_events_without_an_id_fill_no_memory():
    place = MemoryLog()
    writer = place.writer(SCHEMA)
    writer.append(rows(["a", None]))
    writer.append(record_batch(to_arrow(SCHEMA), [5], [5], [2], [["b"], [None]]))
    assert read_last_ids(place.reader(), DedupSpec("id", 10)) == ["a"]


def test_an_id_on_its_way_holds_back_its_double_until_it_is_durable():
    log = Slow(SCHEMA)
    writer = DedupWriter(log, DedupSpec("id", 10))
    log.open.clear()
    answers = []
    first = threading.Thread(target=lambda: answers.append(writer.append(rows(["a"]))))
    first.start()
    while not writer._in_flight:
        first.join(0.01)
    second = threading.Thread(target=lambda: answers.append(writer.append(rows(["b", "a"]))))
    second.start()
    second.join(0.05)
    assert answers == []
    log.open.set()
    first.join(10)
    second.join(10)
    assert [r["id"] for r in log.rows()] == ["a", "b"]
    assert isinstance(answers[1], PartlyAppended)


def test_an_id_whose_append_failed_is_not_known():
    log = Slow(SCHEMA)
    writer = DedupWriter(log, DedupSpec("id", 10))
    log.full = True
    with pytest.raises(LogFull):
        writer.append(rows(["a"]))
    log.full = False
    assert writer.append(rows(["a"])).end == 1


def test_a_sequence_is_remembered_where_all_its_events_are_known():
    place = MemoryLog()
    writer = opened(place, 10)
    writer.append(rows(["a"]))
    writer.append(rows(["a"]), producer="p", sequence=4)
    assert writer.last_sequence("p") == 4
    assert writer.append(rows(["z"]), producer="p", sequence=4).duplicate
    assert ids(place) == ["a"]
    assert writer.append(rows(["z"])).end == 2, "what was not appended is not known"


def test_requests_that_share_an_append_are_told_their_own_offsets():
    place = MemoryLog()
    writer = opened(place, 10)
    admission = Admission(SCHEMA, AdmissionLimits())

    def events(*keys):
        return AdmittedEvents(len(keys), [0] * len(keys), 0, [list(keys), [0] * len(keys)])

    async def scenario():
        with ThreadPoolExecutor(2) as pool:
            intake = AppendQueue(writer, admission, pool)
            asked = [events("a"), events("a", "b"), events("b"), events("c", "c", "d")]
            return await asyncio.gather(*(intake.append(e) for e in asked))

    got = asyncio.run(scenario())
    stored = ids(place)
    assert stored == ["a", "b", "c", "d"]
    assert [stored[g.first : g.end] for g in got] == [["a"], ["b"], [], ["c", "d"]]


def test_doubles_are_counted_and_acknowledged():
    place = MemoryLog()
    spec = SourceSpec("S", "mqtt", {}, MapSpec("csv"))
    told = []

    async def scenario():
        feed = SourceWriter(spec, SCHEMA, opened(place, 10), ManualClock(1000))
        for payload in (b"a,1", b"a,1", b"b,2"):
            await feed.offer(payload, lambda: told.append(1))
        await feed.close()
        return feed.stats

    stats = asyncio.run(scenario())
    assert ids(place) == ["a", "b"]
    assert len(told) == 3
    assert (stats.accepted["S"], stats.duplicates["S"]) == (2, 1)


@pytest.mark.parametrize(
    ("options", "words", "option"),
    [
        ({"dedup": "id", "dedup.bound": "many"}, "must be 1 to", "dedup.bound"),
        ({"dedup": "id", "dedup.bound": "0"}, "must be 1 to", "dedup.bound"),
        ({"dedup": "ip"}, "S has no such attribute", "dedup"),
        ({"dedup": "x"}, "is a double; an id is one of: string, int, long", "dedup"),
    ],
)
def test_ids_that_cannot_be_are_refused_before_anything_starts(options, words, option):
    annotation = Annotation("source", tuple({"type": "http", **options}.items()))
    with pytest.raises(BadSpec, match=words) as bad:
        parse_source("S", annotation, Schema.of("S", id="string", x="double"))
    assert bad.value.option == option


def test_two_sources_of_a_stream_must_agree():
    one = SourceSpec("S", "http", {"dedup": "id", "dedup.bound": "5"})
    other = SourceSpec("S", "mqtt", {"dedup": "id", "dedup.bound": "6"})
    assert dedup_by_stream([one, one, SourceSpec("T", "http")]) == {"S": DedupSpec("id", 5)}
    with pytest.raises(BadSpec, match="declare the same in both"):
        dedup_by_stream([one, other])


def test_with_an_id_at_least_once_becomes_effectively_once():
    options = {"url": "mqtt://h", "topic": "t", "delivery": "effectively-once"}
    with pytest.raises(BadSpec, match="cannot give"):
        check_source(SourceSpec("S", "mqtt", options))
    spec = check_source(SourceSpec("S", "mqtt", {**options, "dedup": "id"}))
    assert spec.options["delivery"] == "effectively-once"
    lossy = {"url": "tcp://127.0.0.1:1", "delivery": "effectively-once", "dedup": "id"}
    with pytest.raises(BadSpec, match="cannot give"):
        check_source(SourceSpec("S", "zeromq", lossy))
    http = SourceSpec("S", "http", {"delivery": "effectively-once", "dedup": "id"})
    assert build_ingest_config([http]).keyed == frozenset(), "the id is the key"
