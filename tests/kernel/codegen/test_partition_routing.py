import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.kernel_runs import START, data, engine, feed, rows

COUNT = "partition with (k of A) begin from A select k, count() as n insert into O; end;"


def test_each_key_has_its_own_state_and_null_has_none():
    events = [("A", 1, "x", 0), ("A", 2, "y", 0), ("A", 3, "x", 0), ("A", 4, None, 0)]
    assert data(COUNT, events) == [("x", 1), ("y", 1), ("x", 2)]


def test_an_event_goes_to_every_range_it_satisfies():
    query = (
        "partition with (v < 5 as 'low' or v < 9 as 'most' of A) begin "
        "from A select v, count() as n insert into O; end;"
    )
    assert data(query, [("A", 1, "x", 7), ("A", 2, "x", 3), ("A", 3, "x", 10)]) == [
        (7, 1), (3, 1), (3, 2),
    ]  # fmt: skip


def test_inner_streams_stay_inside():
    query = (
        "partition with (k of A) begin from A select k, v insert into #I; "
        "from #I#window.length(2) select k, sum(v) as s insert into O; end;"
    )
    assert data(query, [("A", 1, "x", 1), ("A", 2, "y", 5), ("A", 3, "x", 2)]) == [
        ("x", 1), ("y", 5), ("x", 3),
    ]  # fmt: skip


def test_timers_of_many_keys_all_fire():
    query = (
        "partition with (k of A) begin from A#window.timeBatch(10 milliseconds) "
        "select k, count() as n insert into O; end;"
    )
    assert data(query, [("A", 1001, "x", 1), ("A", 1001, "y", 1), 1020]) == [("x", 1), ("y", 1)]


def test_an_idle_instance_is_freed():
    query = "@purge(enable='true', interval='1 sec', idle.period='10 sec') " + COUNT
    running = engine(query)
    feed(running, [("A", 1000, "x", 0), ("A", 5000, "x", 0), 14000, ("A", 14001, "x", 0)])
    assert [e.data[1] for e in running.take() if e.stream == "O"] == [1, 2, 3]
    feed(running, [30000, ("A", 30001, "x", 0)])
    assert [e.data[1] for e in running.take() if e.stream == "O"] == [1]


KEYED_EVENTS = st.lists(st.tuples(st.integers(0, 9), st.sampled_from("abcdef")), max_size=40).map(
    lambda steps: [
        ("A", START + sum(s[0] for s in steps[: i + 1]), k, 0) for i, (_, k) in enumerate(steps)
    ]
)


@given(KEYED_EVENTS, st.integers(1, 4))
def test_beyond_the_limit_the_key_that_was_silent_longest_is_freed(events, limit):
    running = engine(f"@state(limit='{limit}') {COUNT}")
    feed(running, events)
    counts, wanted, freed = {}, [], 0
    for _, _, k, _ in events:
        counts[k] = counts.pop(k, 0) + 1
        wanted.append((k, counts[k]))
        if len(counts) > limit:
            del counts[next(iter(counts))]
            freed += 1
    assert [row[2:] for row in rows(running)] == wanted
    assert sum(running.kernel.stats.dropped.values()) == freed


@given(KEYED_EVENTS, st.integers(1, 20))
def test_a_key_that_is_idle_is_freed_and_counted(events, idle):
    running = engine(f"@state(idle='{idle} millisec') {COUNT}")
    feed(running, events)
    last, counts, wanted = {}, {}, []
    for _, ts, k, _ in events:
        if ts - last.get(k, ts) >= idle:
            counts[k] = 0
        last[k] = ts
        counts[k] = counts.get(k, 0) + 1
        wanted.append((k, counts[k]))
    assert [row[2:] for row in rows(running)] == wanted


@given(KEYED_EVENTS, st.integers(0, 40))
def test_bounded_keys_survive_a_snapshot(events, cut):
    text = f"@state(limit='2', idle='30 millisec') {COUNT}"
    first, second, whole = engine(text), engine(text), engine(text)
    feed(whole, events)
    feed(first, events[:cut])
    second.kernel.restore(list(first.kernel.changed()))
    second._clock, second._offset = first._clock, first._offset
    feed(second, events[cut:])
    assert rows(first) + rows(second) == rows(whole)


@pytest.mark.parametrize("bound", ["limit='20'", "idle='20 millisec'"])
def test_keys_without_end_leave_a_bounded_state(bound):
    running = engine(f"@state({bound}) {COUNT}")
    for i in range(3000):
        running.send("A", START + i, [f"key {i}", 0])
    [(_, state)] = running.kernel.changed()
    assert len(state) < 4000
    assert running.kernel.stats.dropped == {"partition1": 2980}
