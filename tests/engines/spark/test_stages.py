"""What Spark does to a batch is what the driver does to it."""

import pytest
from tests.engines.spark.slices import case

from edgewise.engines.host import Cut
from edgewise.engines.inputs import CLOCK, OFFSET, Inputs
from edgewise.engines.spark.stages import merged
from edgewise.lang import compile_app
from edgewise.node.layout import Layout
from edgewise.node.replay import _load

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
