"""Time slices of a batch give the rows, and leave the state, of one task."""

from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st

from edgewise.engines.batch.inputs import InputLogs
from edgewise.engines.batch.job import BatchRange, Job
from edgewise.engines.batch.live_kernels import fingerprint_plan
from edgewise.engines.batch.outputs import merge_outputs
from edgewise.engines.batch.run import run_key_partition
from edgewise.engines.batch.select_rows import select_rows
from edgewise.event.event import Event
from edgewise.lang import compile_app
from edgewise.node.commands.replay import load_logs
from edgewise.node.data_dir import DataDirectory
from edgewise.plan.rules.keys import split_into_fragments
from edgewise.spark.time_slices import is_refused, run_time_slice

APP = compile_app(
    "define stream S (k string, v int, t long); from S#window.externalTimeBatch(t, 10) "
    "select k, sum(v) as s, count() as n, avg(v) as m group by k insert into O;"
).app
[FRAGMENT] = split_into_fragments(APP)
PLAN = fingerprint_plan(APP, [FRAGMENT])
STEPS = st.lists(st.sampled_from([0, 0, 1, 1, 2, 3, 11, 35]), min_size=1, max_size=120)


def by_one(inputs, cut, job):
    table = inputs.read_table(cut.start, cut.end, cut.clock_start)
    return run_key_partition(job, 0, select_rows(table, job))


def by_slices(parts):
    def run(inputs, cut, job):
        made = [run_time_slice(inputs, cut, job, parts, n).sort_and_strip() for n in range(parts)]
        whole = merge_outputs(made)
        return by_one(inputs, cut, job) if is_refused(whole) else whole

    return run


def rows_of(times, cuts, run, place):
    layout = DataDirectory(Path(place) / "logs")
    events = [Event("S", t, (f"k{n % 3}", n % 7, t)) for n, t in enumerate(times)]
    load_logs(APP, events, layout)
    inputs = InputLogs({"S": str(layout.log_directory("S"))})
    begin, heads = inputs.earliest()["S"], inputs.heads()["S"]
    found, start = [], begin
    for version, end in enumerate((*sorted({begin + c for c in cuts if c < len(times)}), heads)):
        before, after = (inputs.clock_at({"S": at}) for at in (start, end))
        cut = BatchRange(version, {"S": start}, {"S": end}, before, after)
        root = str(Path(place) / "state")
        job = Job(APP, FRAGMENT, version, after, root, ("S",), fingerprint=PLAN)
        made = run(inputs, cut, job)
        found += [row for _, table in made.iterate_sorted() for row in table.to_pylist()]
        start = end
    inputs.close()
    return found


@given(STEPS, st.sets(st.integers(1, 100), max_size=3), st.integers(1, 4), st.booleans())
def test_time_slices_give_the_rows_of_one_task(steps, cuts, parts, uneven):
    times = [1000 + sum(steps[: n + 1]) for n in range(len(steps))]
    if uneven:
        times[len(times) // 2] -= 15
    with TemporaryDirectory() as one, TemporaryDirectory() as several:
        expected = rows_of(times, cuts, by_one, one)
        assert rows_of(times, cuts, by_slices(parts), several) == expected


def test_only_falling_times_are_refused(tmp_path):
    answers = []

    def run(inputs, cut, job):
        whole = merge_outputs(
            run_time_slice(inputs, cut, job, 3, n).sort_and_strip() for n in range(3)
        )
        answers.append(is_refused(whole))
        return whole

    ascending = list(range(1000, 1400))
    rows_of(ascending, (), run, tmp_path / "up")
    rows_of([*ascending[:200], 1000, *ascending[200:]], (), run, tmp_path / "down")
    assert answers == [False, True]
