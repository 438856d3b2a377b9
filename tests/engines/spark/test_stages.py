"""What Spark does to a batch is what the driver does to it."""

import pytest
from tests.engines.spark.slices import case

from edgewise.engines.host import Cut, Job
from edgewise.engines.inputs import CLOCK, OFFSET, Inputs
from edgewise.engines.spark.stages import Scan, expressed, merged, scanned, shuffled, stretched
from edgewise.engines.stretches import refused
from edgewise.event.event import Event
from edgewise.lang import compile_app
from edgewise.node.layout import Layout
from edgewise.node.replay import _load
from edgewise.plan.rules.keys import split
from edgewise.plan.rules.native import projections
from edgewise.plan.rules.stretch import batches_of

pytestmark = pytest.mark.spark


def test_several_inputs_are_numbered_and_clocked_as_the_driver_does_it(spark, tmp_path):
    import json

    text, events, _ = case(3)
    app = compile_app(text).app
    layout = Layout(tmp_path)
    _load(app, events, layout)
    logs = {s.name: str(layout.log(s.name)) for s in app.inputs}
    assert len(logs) == 2
    inputs = Inputs(logs)
    start, end = {"S": 5, "T": 3}, inputs.heads()
    cut = Cut(0, start, end, inputs.clock(start), inputs.clock(end))
    table = inputs.table(start, end, cut.clock_start)
    inputs.close()
    reader = spark.read.format("edgewise").option("logs", json.dumps(logs))
    frame = reader.option("start", json.dumps(start)).option("end", json.dumps(end)).load()
    alive = merged(frame, cut).where("_kind != 2").orderBy(OFFSET)
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
def test_every_plan_of_a_fragment_gives_the_same_rows(spark, tmp_path, name):
    import json

    app = compile_app(f"define stream S (k string, v int, t long); {PLANS[name]}").app
    layout = Layout(tmp_path)
    events = [Event("S", 1000 + n, (f"k{n % 7}", n % 10, 1000 + n)) for n in range(500)]
    _load(app, events, layout)
    logs = {"S": str(layout.log("S"))}
    cut = Cut(0, {"S": 3}, {"S": 480}, 1000, 1500)
    frame = spark.read.format("edgewise").option("logs", json.dumps(logs))
    frame = frame.option("start", json.dumps(cut.start)).option("end", json.dumps(cut.end)).load()
    [fragment] = split(app)

    def job(where):
        return Job(app, fragment, 0, cut.clock, str(tmp_path / where), ("S",))

    staging, spread = tmp_path / "staging", fragment.keyed or fragment.stateless
    Scan(logs, staging).clear()
    plans = [
        scanned(spark, Scan(logs, staging), cut, job("scanned"), 3 if spread else 1),
        shuffled(frame, job("shuffled"), 3 if fragment.keyed else 1),
    ]
    if fragment.stateless:
        found = projections(app, fragment)
        plans.append(expressed(frame, job("projected"), found))
    if batches_of(app, fragment):
        plans.append(stretched(spark, Scan(logs, staging), cut, job("stretched"), 3))
        assert not refused(plans[-1])
    each = [{s: t.to_pylist() for s, t in made.ordered()} for made in plans]
    assert each[0]["O"]
    assert all(rows == each[0] for rows in each)
