"""Stretches of a batch side by side give the rows, and leave the state, of one task."""

from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st

from edgewise.engines.host import Cut, Job, run_part
from edgewise.engines.inputs import Inputs
from edgewise.engines.results import merged
from edgewise.engines.scan import fed
from edgewise.engines.stretches import refused, run_stretch
from edgewise.event.event import Event
from edgewise.lang import compile_app
from edgewise.node.layout import Layout
from edgewise.node.replay import _load
from edgewise.plan.rules.keys import split

APP = compile_app(
    "define stream S (k string, v int, t long); from S#window.externalTimeBatch(t, 10) "
    "select k, sum(v) as s, count() as n, avg(v) as m group by k insert into O;"
).app
[FRAGMENT] = split(APP)
STEPS = st.lists(st.sampled_from([0, 0, 1, 1, 2, 3, 11, 35]), min_size=1, max_size=120)


def by_one(inputs, cut, job):
    table = inputs.table(cut.start, cut.end, cut.clock_start)
    return run_part(job, 0, fed(table, job))


def by_stretches(parts):
    def run(inputs, cut, job):
        made = [run_stretch(inputs, cut, job, parts, n).settled() for n in range(parts)]
        whole = merged(made)
        return by_one(inputs, cut, job) if refused(whole) else whole

    return run


def rows_of(times, cuts, run, place):
    layout = Layout(Path(place) / "logs")
    events = [Event("S", t, (f"k{n % 3}", n % 7, t)) for n, t in enumerate(times)]
    _load(APP, events, layout)
    inputs = Inputs({"S": str(layout.log("S"))})
    begin, heads = inputs.earliest()["S"], inputs.heads()["S"]
    found, start = [], begin
    for version, end in enumerate((*sorted({begin + c for c in cuts if c < len(times)}), heads)):
        before, after = (inputs.clock({"S": at}) for at in (start, end))
        cut = Cut(version, {"S": start}, {"S": end}, before, after)
        job = Job(APP, FRAGMENT, version, after, str(Path(place) / "state"), ("S",))
        made = run(inputs, cut, job)
        found += [row for _, table in made.ordered() for row in table.to_pylist()]
        start = end
    inputs.close()
    return found


@given(STEPS, st.sets(st.integers(1, 100), max_size=3), st.integers(1, 4), st.booleans())
def test_the_rows_are_those_of_one_task(steps, cuts, parts, uneven):
    times = [1000 + sum(steps[: n + 1]) for n in range(len(steps))]
    if uneven:
        times[len(times) // 2] -= 15
    with TemporaryDirectory() as one, TemporaryDirectory() as several:
        expected = rows_of(times, cuts, by_one, one)
        assert rows_of(times, cuts, by_stretches(parts), several) == expected


def test_times_that_fall_are_refused_and_others_are_not(tmp_path):
    answers = []

    def run(inputs, cut, job):
        whole = merged(run_stretch(inputs, cut, job, 3, n).settled() for n in range(3))
        answers.append(refused(whole))
        return whole

    ascending = list(range(1000, 1400))
    rows_of(ascending, (), run, tmp_path / "up")
    rows_of([*ascending[:200], 1000, *ascending[200:]], (), run, tmp_path / "down")
    assert answers == [False, True]
