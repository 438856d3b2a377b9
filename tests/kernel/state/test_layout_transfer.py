"""A plan changes between two events: who did not change does not notice, who did begins there."""

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.kernel_plans import kernel_of

from edgewise.kernel.api import EventRun
from edgewise.kernel.codegen.state_owners import compare
from edgewise.lang import compile_app

END = 2000
HEAD = """
define stream S (k string, v int); define stream T (k string, v int);
define table Kept (k string, v int);
define window Last (k string, v int) length(2) output all events;
define trigger Tick at every 30 millisec;
"""
# Each feeds on S and T alone, so that none depends on another.
PARTS = {
    "filter": "from S[v > 1] select k, v insert into {0};",
    "sums": "from S#window.time(60) select k, sum(v) as s group by k insert all events into {0};",
    "length": "from S#window.length(3) select k, avg(v) as a insert into {0};",
    "batches": "from S#window.timeBatch(40) select count() as n insert into {0};",
    "counts": "from T select k, count() as n group by k insert into {0};",
    "limited": "from S select k, v output last every 50 millisec insert into {0};",
    "pair": """from every e1=S -> e2=T[k == e1.k] within 50 millisec
        select e1.v as a insert into {0};""",
    "three": """from every e1=S -> e2=T[v > e1.v] -> e3=S[v == 0] within 90 millisec
        select e1.v as a, e2.v as b insert into {0};""",
    "absent": """from every e1=S -> not T[k == e1.k] for 25 millisec
        select e1.k as k insert into {0};""",
    "silent": "from not T[v == 3] for 45 millisec select 1 as one insert into {0};",
    "timeouts": """from every e1=S -> e2=T[k == e1.k] within 20 millisec
        select e1.v as a insert timeout events into {0};""",
    "joined": """from S#window.time(40) as a join T#window.length(2) as b on a.k == b.k
        select a.v as x, b.v as y insert into {0};""",
    "ticks": "from Tick select 'tick' as t insert into {0};",
}  # fmt: skip
INSIDE = {
    "runs": "from every e1=S, e2=S[v > e1.v] select e1.v as a, e2.v as b insert into {0};",
    "totals": "from S select k, sum(v) as s insert into {0};",
    "idle": "@state(idle='30 millisec') from every e1=S -> e2=S[v > e1.v] -> e3=S[v == 0] "
    "select e1.v as a insert into {0};",
}
EVENTS = st.lists(
    st.tuples(
        st.integers(0, 25), st.sampled_from("SST"), st.sampled_from("ab"), st.integers(0, 3)
    ),
    min_size=1,
    max_size=25,
).map(
    lambda steps: [
        (1000 + sum(s[0] for s in steps[: i + 1]), stream, (k, v))
        for i, (_, stream, k, v) in enumerate(steps)
    ]
)
NAMES = st.lists(st.sampled_from(sorted(PARTS)), unique=True, max_size=5)
INNER = st.lists(st.sampled_from(sorted(INSIDE)), unique=True, max_size=3)


def app_of(names, inner=(), state=""):
    def query(name, text):
        return f"@info(name='{name}') {text.format('Out_' + name)}\n"

    text = HEAD + "".join(query(n, PARTS[n]) for n in names)
    if inner:
        inside = "".join(query(n, INSIDE[n]) for n in inner)
        text += f"{state} partition with (k of S) begin {inside} end;"
    return compile_app(text).app


def runs(events, clock=0):
    found = []
    for offset, (ts, stream, row) in enumerate(events):
        clock = max(clock, ts)
        found.append(EventRun(stream, [ts], [[v] for v in row], [offset], [clock], [0]))
    return found


def rows(kernel):
    return [(r.stream, r.clock, r.phase, r.ts, r.kind, r.data) for r in kernel.take()]


def of(found, names):
    """By query: of two that one event sets in motion, the one written first comes first."""
    return {name: [row for row in found if row[0] == f"Out_{name}"] for name in names}


def states(kernel):
    return [(key, state) for key, state in kernel.changed() if state is not None]


PLANS = st.tuples(NAMES.filter(bool), INNER)


@settings(max_examples=40)  # four kernels each
@given(PLANS, PLANS, EVENTS, st.integers(1, 25))
def test_who_did_not_change_does_not_notice_and_who_is_new_begins_here(one, two, events, cut):
    (before, inside), (after, then_inside) = one, two
    state = "@state(limit='1')" if len(events) % 2 else ""
    old, new = app_of(before, inside, state), app_of(after, then_inside, state)
    cut = min(cut, len(events))
    parts = runs(events)
    clock = parts[cut - 1].clock[-1]
    first, second = kernel_of(old), kernel_of(new)
    told = compare([first.layout], [second.layout]).kept
    kept = [n for n in (*after, *then_inside) if f"query {n}" in told]
    assert set(kept) >= set(after) & set(before)
    if min(len(inside), len(then_inside)) > 1:  # a pattern alone keeps its keys in another form
        assert set(kept) >= set(inside) & set(then_inside)
    first.start(1000)
    for run in parts[:cut]:
        first.feed(run)
    rows(first)
    second.carry(first.layout, states(first), clock)
    third = kernel_of(new)
    third.restore(states(second))
    alone = kernel_of(app_of([n for n in after if n not in before] or ["filter"]))
    alone.start(clock)
    for kernel in (first, second, third, alone):
        for run in parts[cut:]:
            kernel.feed(run)
        kernel.advance(END, 0)
    found, expected, fresh = rows(second), rows(first), rows(alone)
    assert of(found, kept) == of(expected, kept)
    added = [n for n in after if n not in before and n != "ticks"]  # its trigger is not new
    assert of(found, added) == of(fresh, added)
    assert rows(third) == found


KEYED = """define stream S (k string, v int);
@info(name='sums') from S#window.time(60) select k, sum(v) as s group by k insert into Out_sums;
@info(name='many') from S select k, count() as n group by k insert into Out_many;"""


@given(EVENTS, st.integers(1, 25))
def test_keys_keep_their_state(events, cut):
    events = [(ts, "S", row) for ts, _, row in events]
    old = compile_app(KEYED).app
    new = compile_app(KEYED.replace("count() as n", "count() as m")).app
    parts = runs(events)
    first, second = kernel_of(old, key=("k",)), kernel_of(new, key=("k",))
    for run in parts[:cut]:
        first.feed(run)
    rows(first)
    second.carry(first.layout, states(first), 0)
    for kernel in (first, second):
        for run in parts[cut:]:
            kernel.feed(run)
        kernel.advance(END, 0)
    found = rows(second)
    assert of(found, ["sums"]) == of(rows(first), ["sums"])
    for key in "ab":
        mine = [row[5][1] for row in of(found, ["many"])["many"] if row[5][0] == key]
        assert mine == list(range(1, len(mine) + 1))


@given(EVENTS, st.integers(1, 25))
def test_events_that_wait_to_be_put_in_order_go_on_waiting(events, cut):
    def late(ms):
        mark = f"@lateness('{ms} millisec') " if ms else ""
        return compile_app(
            f"{mark}define stream S (k string, v int); from S select v insert into Out_x;"
        ).app

    events = [(ts, "S", row) for ts, _, row in events]
    for then in (40, 90, 0):
        first, second = kernel_of(late(40)), kernel_of(late(then))
        parts = runs(events)
        for run in parts[:cut]:
            first.feed(run)
        so_far = rows(first)
        clock = parts[min(cut, len(parts)) - 1].clock[-1]
        second.carry(first.layout, states(first), clock)
        for run in parts[cut:]:
            second.feed(run)
        second.advance(END, 0)
        values = [row[5] for row in so_far + rows(second)]
        assert values == [(v,) for _, _, (_, v) in events]


def test_the_report_names_everyone():
    old = kernel_of(app_of(["sums", "pair", "ticks"], ["runs", "idle"])).layout
    text = PARTS["pair"]
    PARTS["pair"] = text.replace("50 millisec", "51 millisec")
    new = kernel_of(app_of(["counts", "sums", "pair"], ["idle", "totals", "runs"])).layout
    PARTS["pair"] = text
    change = compare([old], [new])
    assert set(change.kept) >= {"query sums", "query runs", "partition partition1", "table Kept"}
    assert change.changed == ("query pair",)
    assert change.added == ("query counts", "query totals")
    assert change.removed == ("query ticks",)
    assert "changed, begins anew: query pair" in str(change)


def test_a_query_that_only_moved_is_the_same():
    queries = (f"@info(name='{n}') {PARTS[n].format('Out_' + n)}" for n in ("sums", "pair"))
    moved = compile_app("-- a comment\n\n" + HEAD + "\n\n".join(queries)).app
    assert kernel_of(app_of(["sums", "pair"])).layout == kernel_of(moved).layout
