"""The law of keys: a fragment run key by key gives the rows of one task, for any events."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgewise.kernel import compile_kernel
from edgewise.kernel.api import EventRun
from edgewise.lang import compile_app
from edgewise.plan.fragments import Fragment
from edgewise.plan.rules.keys import split_into_fragments

DEFINE = "define stream A (k string, v int); define stream B (k string, v int);"
APPS = [
    "from A#window.time(3 sec) select k, sum(v) as t group by k insert all events into O;",
    "from A select k, max(v) as t, count() as n group by k having n > 1 insert into O;",
    """from every a=A -> b=B[k == a.k and v > a.v] within 4 sec
    select a.v as x, b.v as y insert into O;""",
    """from every a=A -> b=B[k == a.k]<1:3> -> c=A[k == a.k]
    select a.v as x, b[last].v as y, c.v as z insert into O;""",
    "from every a=A -> not B[k == a.k] for 2 sec select a.k as k, a.v as v insert into O;",
    """from A#window.time(2 sec) as a join B#window.time(3 sec) as b on a.k == b.k
    select a.v as x, b.v as y insert all events into O;""",
    """partition with (k of A, k of B)
    begin
        from every a=A, b=B select a.v as x, b.v as y insert into #I;
        from #I#window.length(2) select sum(x) as s insert into O;
    end;""",
    """from A[v > 2] select k, v insert into M;
    from B select k, v insert into M;
    from M#window.time(2 sec) select k, count() as n group by k insert into O;""",
]
events = st.lists(
    st.tuples(
        st.sampled_from("AB"),
        st.integers(0, 1500),  # ms since the one before
        st.sampled_from(["x", "y", "z", None]),
        st.integers(0, 5),
    ),
    max_size=30,
)


def rows(app, fragment, given_events):
    kernel = compile_kernel(app, fragment)
    kernel.start(0)
    clock = 0
    for offset, (stream, gap, key, value) in enumerate(given_events):
        clock += gap
        if stream in fragment.inputs:
            kernel.feed(EventRun(stream, [clock], [[key], [value]], [offset], [clock], [0]))
    kernel.advance(clock + 10_000, 0)
    return Counter((r.clock, r.phase, r.stream, r.ts, r.kind, r.data) for r in kernel.take())


@pytest.mark.parametrize("text", APPS)
def test_key_by_key_is_the_same_as_one_task(text):
    app = compile_app(DEFINE + text).app
    [fragment] = split_into_fragments(app)
    assert fragment.keyed
    single = Fragment("one", fragment.queries, fragment.inputs)

    @settings(max_examples=40, deadline=None)
    @given(events)
    def law(given_events):
        assert rows(app, fragment, given_events) == rows(app, single, given_events)

    law()
