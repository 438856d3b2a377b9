"""Sequences in straight lines against the general machine, which `having` selects."""

from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.kernel_runs import START, STREAMS, engine, feed, rows

from edgewise.kernel import compile_kernel
from edgewise.kernel.api import EventRun
from edgewise.lang import compile_app
from edgewise.plan.fragments import Fragment

COUNTS = ["+", "*", "?", "<1>", "<0:2>", "<1:3>", "<:2>"]
GENERAL = "having true == true"


OPTIONAL = {"*", "?", "<0:2>", "<:2>"}  # an element that may take nothing


@st.composite
def sequences(draw):
    """A query that has straight lines, with a position for what makes it general."""
    size = draw(st.integers(2, 4))
    parts, read = [], []
    for n in range(1, size + 1):
        may_count = n < size and not (parts and parts[-1][1])
        count = draw(st.sampled_from(["", *COUNTS])) if may_count else ""
        if n == 1 and count in OPTIONAL:
            count = "+"
        tests = ["", "[v > 3]", "[v < 6]", "[v > 2 and v < 8]", "[v != 4]"]
        if n > 1:
            tests += ["[v >= e1.v]" if not parts[0][1] else "[v >= e1[0].v]"]
            last = "[last]" if parts[-1][1] else ""
            tests += [f"[e{n - 1}{last}.v < v or e{n - 1}{last} is null]"]
        if count:
            tests += [f"[e{n}[last] is null or v >= e{n}[last].v]", f"[v <= e{n}[0].v + 2]"]
        stream = draw(st.sampled_from("AAAB"))
        parts.append((f"e{n}={stream}{draw(st.sampled_from(tests))}{count}", count))
        read += [f"e{n} is null"]
        if count not in OPTIONAL:
            read += [f"e{n}.v"]
        if count:
            read += [f"e{n}[0].v", f"e{n}[last].v", f"e{n}[1].v", f"e{n}[last] is null"]
    items = draw(st.lists(st.sampled_from(read), min_size=1, max_size=4))
    items = ", ".join(f"{item} as o{i}" for i, item in enumerate(items))
    every = draw(st.sampled_from(["every ", ""]))
    within = draw(st.sampled_from(["", " within 12 milliseconds"]))
    text = f"from {every}{', '.join(p for p, _ in parts)}{within} select {items} %s insert into O;"
    if draw(st.booleans()):
        text = f"partition with (k of A, k of B) begin {text} end;"
    return text


EVENTS = st.lists(
    st.tuples(
        st.sampled_from("AAAB"),
        st.integers(-2, 7),
        st.sampled_from(["x", "x", "y", None]),
        st.none() | st.integers(0, 9),
    ),
    max_size=40,
)


def runs_of(events, cuts):
    """The events as runs of one stream each, cut also where `cuts` says."""
    now = clock = START
    runs = []
    for offset, (stream, gap, k, v) in enumerate(events):
        now += gap
        clock = max(clock, now)
        if not runs or runs[-1].stream != stream or offset in cuts:
            runs.append(EventRun(stream, [], [[], []], [], [], []))
        run = runs[-1]
        for column, value in zip(
            (run.ts, *run.columns, run.offset, run.clock, run.at),
            (now, k, v, offset, clock, 0),
            strict=True,
        ):
            column.append(value)
    return runs


@cache
def app_of(text):
    return compile_app(STREAMS + text).app


def kernel_of(text, taps=()):
    app = app_of(text)
    return compile_kernel(app, Fragment("f", tuple(q.name for q in app.queries)), taps)


def played(text, events, cuts=(), saved=(), taps=()):
    """The rows; after run n of `saved` the state goes through bytes into a new kernel."""
    kernel, found = kernel_of(text, taps), []
    for n, run in enumerate(runs_of(events, cuts)):
        if n in saved:
            found += kernel.take()
            state = {key: data for key, data in kernel.changed() if data is not None}
            kernel = kernel_of(text, taps)
            kernel.restore(state.items())
        kernel.feed(run)
    found += kernel.take()
    return [(r.clock, r.offset, r.ts, r.data) for r in found if r.stream == "O"]


def test_an_optional_element_that_took_nothing_is_read_as_an_empty_list():
    text = "from every e1=A+, e2=A, e3=A*, e4=A select e3.v as o0 %s insert into O;"
    assert "pat.Machine" in kernel_of(text % "").source
    events = [("A", n, "x", None) for n in range(3)]
    assert [data for *_, data in played(text % "", events)] == [([],)]


@settings(max_examples=150, deadline=None)
@given(sequences(), EVENTS, st.sets(st.integers(0, 40)), st.sets(st.integers(0, 40)))
def test_straight_lines_equal_the_general_machine(text, events, cuts, saved):
    fast, general = text % "", text % GENERAL
    assert "pat.Machine" not in kernel_of(fast).source
    assert "pat.Machine" in kernel_of(general).source
    expected = played(general, events)
    assert played(fast, events) == expected
    assert played(fast, events, cuts, saved) == expected
    assert played(fast, events, cuts, saved, taps=["query1"]) == expected


@pytest.mark.parametrize(
    "text",
    [
        "from every e1=A, e2=A+, e3=A* , e4=B",
        "from every e1=A, e2=A+",
        "from every e1=A, e2=A<2>, e3=A",
        "from every e1=A*, e2=A",
        "from every (e1=A, e2=A), e3=A",
        "from every e1=A, e2=A and e3=B",
        "from e1=A, not B for 1 sec",
        "from every e1=A, e2=A[eventTimestamp(e1) > 5L]",
    ],
)
def test_other_shapes_stay_with_the_general_machine(text):
    assert "pat.Machine" in kernel_of(f"{text} select e1.v as a insert into O;").source


def test_a_key_whose_match_ended_is_forgotten():
    text = "partition with (k of A) begin from every e1=A[v > 5], e2=A+, e3=A[v == 0] "
    running = engine(text + "select e1.v as a insert into O; end;")
    feed(running, [("A", START + i, f"k{i}", 9 if i % 2 else 1) for i in range(40)])
    held = running.kernel._rt.root[2]
    assert len(held) == 20
    feed(running, [("A", START + 50 + i, f"k{i}", v) for i in range(1, 40, 2) for v in (7, 0)])
    assert not held
    assert len(rows(running)) == 20
