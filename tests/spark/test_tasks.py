"""What Spark does to a batch is what the driver does to it."""

import pytest
from tests.support.random_batches import case

from edgewise.engines.batch.columns import CLOCK, OFFSET
from edgewise.engines.batch.inputs import InputLogs
from edgewise.engines.batch.job import BatchRange, Job
from edgewise.engines.batch.live_kernels import fingerprint_plan
from edgewise.event.event import Event
from edgewise.lang import compile_app
from edgewise.node.commands.replay import load_logs
from edgewise.node.data_dir import DataDirectory
from edgewise.plan.rules.keys import split_into_fragments
from edgewise.plan.rules.native_spark import build_projections
from edgewise.plan.rules.sliceable_windows import find_time_batch_window
from edgewise.spark.tasks import (
    TaskFiles,
    merge_inputs,
    run_log_scan,
    run_native,
    run_shuffle,
    run_time_slices,
)
from edgewise.spark.time_slices import is_refused

pytestmark = pytest.mark.spark


def test_several_inputs_are_numbered_and_clocked_as_the_driver_does_it(spark, tmp_path):
    import json

    text, events, _ = case(3)
    app = compile_app(text).app
    layout = DataDirectory(tmp_path)
    load_logs(app, events, layout)
    logs = {s.name: str(layout.log_directory(s.name)) for s in app.inputs}
    assert len(logs) == 2
    inputs = InputLogs(logs)
    start, end = {"S": 5, "T": 3}, inputs.heads()
    cut = BatchRange(0, start, end, inputs.clock_at(start), inputs.clock_at(end))
    table = inputs.read_table(start, end, cut.clock_start)
    inputs.close()
    reader = spark.read.format("edgewise").option("logs", json.dumps(logs))
    frame = reader.option("start", json.dumps(start)).option("end", json.dumps(end)).load()
    alive = merge_inputs(frame, cut).where("_kind != 2").orderBy(OFFSET)
    found = alive.select(*table.column_names).toArrow()
    assert found.to_pylist() == table.to_pylist()
    assert found.column(CLOCK)[0].as_py() >= cut.clock_start


PLANS = {
    "by key": "from S select k, sum(v) as n group by k insert into O;",
    "no state": "from S[v > 3] select k, v * 2 as n insert into O; "
    "from S[v < 3] select k insert into P;",
    "by time": "from S#window.externalTimeBatch(t, 10) select k, sum(v) as n group by k "
    "insert into O;",
}


@pytest.mark.parametrize("name", list(PLANS))
def test_every_way_to_run_a_fragment_gives_the_same_rows(spark, tmp_path, name):
    import json

    app = compile_app(f"define stream S (k string, v int, t long); {PLANS[name]}").app
    layout = DataDirectory(tmp_path)
    events = [Event("S", 1000 + n, (f"k{n % 7}", n % 10, 1000 + n)) for n in range(500)]
    load_logs(app, events, layout)
    logs = {"S": str(layout.log_directory("S"))}
    cut = BatchRange(0, {"S": 3}, {"S": 480}, 1000, 1500)
    frame = spark.read.format("edgewise").option("logs", json.dumps(logs))
    frame = frame.option("start", json.dumps(cut.start)).option("end", json.dumps(cut.end)).load()
    [fragment] = split_into_fragments(app)

    def job(where):
        root = str(tmp_path / where)
        plan = fingerprint_plan(app, [fragment])
        return Job(app, fragment, 0, cut.clock, root, ("S",), fingerprint=plan)

    staging, spread = tmp_path / "staging", fragment.keyed or fragment.stateless
    TaskFiles(logs, staging).clear_staging()
    plans = [
        run_log_scan(spark, TaskFiles(logs, staging), cut, job("scanned"), 3 if spread else 1),
        run_shuffle(frame, job("shuffled"), 3 if fragment.keyed else 1),
    ]
    if fragment.stateless:
        found = build_projections(app, fragment)
        plans.append(run_native(frame, job("projected"), found))
    if find_time_batch_window(app, fragment):
        plans.append(run_time_slices(spark, TaskFiles(logs, staging), cut, job("sliced"), 3))
        assert not is_refused(plans[-1])
    each = [{s: t.to_pylist() for s, t in made.iterate_sorted()} for made in plans]
    assert each[0]["O"]
    assert all(rows == each[0] for rows in each)
