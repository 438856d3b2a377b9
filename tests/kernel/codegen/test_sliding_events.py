"""Sliding windows in straight lines give the rows and the state of the operators they replace."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgewise.kernel import compile_kernel
from edgewise.kernel.api import EventRun
from edgewise.lang import compile_app
from edgewise.plan.fragments import Fragment
from edgewise.plan.rules.keys import split_into_fragments

HEAD = "define stream S (k string, v int, t long); "
QUERIES = {
    "time": "from S#window.time(5) select k, avg(v) as a, min(v) as m group by k insert into O;",
    "time, no group": "from S#window.time(5) select k, sum(v) as a insert into O;",
    "time, filtered": "from S[v > 3]#window.time(5) select k, count() as n group by k "
    "having n > 1 insert into O;",
    "external time": "from S#window.externalTime(t, 5) select k, max(v) as a group by k "
    "insert into O;",
    "length": "from S#window.length(4) select k, sum(v) as a group by k insert into O;",
    "beside a pattern": "from S#window.time(5) select k, sum(v) as a group by k insert into O; "
    "partition with (k of S) begin from every e1=S[v > 5] -> e2=S[v < 5] within 9 millisec "
    "select e1.v as a, e2.v as b insert into P; end;",
}
EVENTS = st.lists(
    st.tuples(
        st.integers(0, 4),
        st.sampled_from("ab"),
        st.none() | st.integers(0, 9),
        st.none() | st.integers(0, 9),
    ),
    max_size=20,
)


def run_of(events):
    clock, ts = 0, []
    for step, *_ in events:
        clock += step
        ts.append(clock)
    columns = [list(c) for c in zip(*[e[1:] for e in events], strict=True)] or [[], [], []]
    return EventRun("S", ts, columns, list(range(len(ts))), ts, [t * 1000 for t in ts])


def single(run, at):
    return EventRun(
        run.stream, run.ts[at : at + 1], [c[at : at + 1] for c in run.columns],
        run.offset[at : at + 1], run.clock[at : at + 1], run.at[at : at + 1],
    )  # fmt: skip


@pytest.mark.parametrize("keyed", [True, False])
@pytest.mark.parametrize("query", QUERIES)
@given(events=EVENTS)
def test_rows_and_state_are_those_of_the_calls(query, keyed, events):
    app = compile_app(HEAD + QUERIES[query]).app
    fragment = Fragment("f", tuple(q.name for q in app.queries))
    if keyed:
        [fragment] = split_into_fragments(app)
    straight = compile_kernel(app, fragment)
    calls = compile_kernel(app, fragment, as_sent=True)
    assert "held.popleft(" in straight.source
    assert "held.popleft(" not in calls.source
    run = run_of(events)
    for kernel in (straight, calls):
        for at in range(len(events)):
            kernel.feed(single(run, at))
    rows = [sorted(kernel.take_tuples()) for kernel in (straight, calls)]
    drop_seq = [[row[:4] + row[5:] for row in found] for found in rows]
    assert drop_seq[0] == drop_seq[1]
    kept = [compile_kernel(app, fragment) for _ in range(2)]
    for kernel, again in zip((straight, calls), kept, strict=True):
        again.restore([(key, data) for key, data in kernel.changed() if data is not None])
    for again in kept:
        again.feed(EventRun("S", [500], [["a"], [7], [8]], [99], [500], [500_000]))
    assert kept[0].take_tuples() == kept[1].take_tuples()
