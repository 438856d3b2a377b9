"""A keyed pair against the general machine, which a grouping that changes nothing selects."""

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.engines.kernel.apps import START, engine, feed, rows

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
    st.tuples(st.sampled_from("AB"), st.integers(0, 8), st.sampled_from("xy"), st.integers(0, 9)),
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
    assert "pend, order" in fast.kernel.source
    assert "pat.Machine" in general.kernel.source
    events = list(timed(events))
    feed(fast, events)
    feed(general, events)
    assert rows(fast) == rows(general)


def test_what_is_too_old_is_forgotten():
    running = engine(texts(("A", "", "within 10 milliseconds"))[0])
    feed(running, [("A", START + i * 20, f"k{i}", 9) for i in range(50)])
    (state,) = running.kernel._rt.keys.values()
    pend, order = state[2]
    assert len(pend) == len(order) == 1
