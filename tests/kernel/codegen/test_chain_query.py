"""Chains against the general machine, which a grouping that changes nothing selects."""

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.kernel_runs import START, engine, feed, rows

PAIR = (
    "from every e1=A[v > 3] -> e2={s}[k == e1.k {more}] {within} "
    "select e1.k as k, e1.v as a, e2.v as b {general} insert into O;"
)
SHAPES = st.tuples(
    st.sampled_from("AB"),
    st.sampled_from(["", "and v < 5", "and v < e1.v"]),
    st.sampled_from(["", "within 10 milliseconds"]),
)
EVENTS = st.lists(
    st.tuples(st.sampled_from("AB"), st.integers(-9, 9), st.sampled_from("xy"), st.integers(0, 9)),
    max_size=25,
)


def texts(shape):
    stream, more, within = shape
    fields = {"s": stream, "more": more, "within": within}
    return [PAIR.format(**fields, general=g) for g in ("", "having true == true")]


def timed(events):
    now = START
    for stream, gap, k, v in events:
        now += gap
        yield (stream, now, k, v)


@settings(max_examples=60)
@given(SHAPES, EVENTS)
def test_a_keyed_pair_equals_the_general_machine(shape, events):
    fast, general = (engine(text) for text in texts(shape))
    assert "held, order" in fast.kernel.source
    assert "pat.Machine" in general.kernel.source
    events = list(timed(events))
    feed(fast, events)
    feed(general, events)
    assert rows(fast) == rows(general)


LONGER = st.tuples(
    st.lists(st.sampled_from([*"AABB"]), min_size=2, max_size=4),
    st.sampled_from(["partition", "equality", "before", "none"]),
    st.lists(st.sampled_from(["", "v < 5", "v > 3", "v != e1.v"]), min_size=4, max_size=4),
    st.sampled_from(["", "within 10 milliseconds"]),
)


def longer(shape, general):
    streams, kind, conditions, within = shape
    steps = ["every e1=A[v > 2]"]
    for n, (stream, condition) in enumerate(zip(streams, conditions, strict=False), 2):
        parts = [] if kind == "none" and "e1" in condition else [condition]
        parts += {"equality": ["k == e1.k"], "before": [f"k == e{n - 1}.k"]}.get(kind, [])
        text = " and ".join(filter(None, parts))
        steps.append(f"e{n}={stream}" + (f"[{text}]" if text else ""))
    items = ", ".join(f"e{n}.v as c{n}" for n in range(1, len(streams) + 2))
    body = f"from {' -> '.join(steps)} {within} select {items} {general} insert into O;"
    if kind == "partition":
        return f"partition with (k of A, k of B) begin {body} end;"
    return body


@settings(max_examples=80)
@given(LONGER, EVENTS, st.integers(0, 25))
def test_a_longer_chain_equals_the_general_machine(shape, events, cut):
    chain, general = (engine(longer(shape, g)) for g in ("", "having true == true"))
    assert "held, order" in chain.kernel.source
    events = list(timed(events))
    feed(general, events)
    feed(chain, events[:cut])
    found = rows(chain)
    entries = [(key, data) for key, data in chain.kernel.changed() if data is not None]
    again = engine(longer(shape, ""))
    again.kernel.restore(entries)
    feed(again, [max([START, *(e[1] for e in events[:cut])]), *events[cut:]])
    assert found + rows(again) == rows(general)


def played(query, events):
    found = [engine(query.format(general=g)) for g in ("", "having true == true")]
    for running in found:
        feed(running, events)
    fast, general = (rows(running) for running in found)
    assert fast == general
    return [row[2:] for row in fast]


WITHIN_10 = (
    "from every e1=A[v > 3] -> e2={s}[k == e1.k and v < 3] within 10 milliseconds "
    "select e1.v as a, e2.v as b {{general}} insert into O;"
)


def test_the_clock_ends_a_pair_whatever_moves_it():
    pair = WITHIN_10.format(s="A")
    assert played(pair, [("A", 1000, "x", 9), ("A", 1012, "y", 0), ("A", 1008, "x", 1)]) == []
    assert played(pair, [("A", 1000, "x", 9), ("B", 1012, "y", 0), ("A", 1008, "x", 1)]) == []


def test_a_late_event_ends_no_pair():
    late = [("A", 1020, "x", 9), ("A", 1005, "x", 1), ("A", 1002, "y", 0), ("A", 1025, "x", 2)]
    assert played(WITHIN_10.format(s="A"), late) == [(9, 2)]


def test_firsts_that_came_late_keep_their_place():
    firsts = [("A", 1005, "x", 8), ("A", 1002, "x", 9), ("A", 1006, "x", 7)]
    pairs = played(WITHIN_10.format(s="B"), [*firsts, ("B", 1007, "x", 1)])
    assert pairs == [(8, 1), (9, 1), (7, 1)]


def test_rows_of_a_batch_are_behind_the_clock_and_still_pairs():
    batch = "from A#window.lengthBatch(3) select k, v insert into M; " + WITHIN_10.format(s="M")
    events = [("A", 1000, "x", 9), ("A", 1007, "x", 1), ("A", 1500, "y", 9)]
    assert played(batch.replace("e1=A", "e1=M"), events) == [(9, 1)]


def test_what_is_too_old_is_forgotten():
    running = engine(texts(("A", "", "within 10 milliseconds"))[0])
    feed(running, [("A", START + i * 20, f"k{i}", 9) for i in range(50)])
    (state,) = running.kernel._rt.keys.values()
    held, order = state[2]
    assert len(held) == len(order) == 1
