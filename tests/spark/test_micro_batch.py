"""A batch is read once, however many fragments need it."""

from types import SimpleNamespace

from tests.support.random_batches import case

from edgewise.engines.batch.inputs import InputLogs
from edgewise.engines.batch.job import BatchRange
from edgewise.lang import compile_app
from edgewise.log.segment_writer import SegmentWriter
from edgewise.node.commands.replay import load_logs
from edgewise.node.data_dir import DataDirectory
from edgewise.spark.app_plan import plan_app
from edgewise.spark.micro_batch import MicroBatch, find_targets


def test_events_are_read_once_and_in_order(tmp_path):
    text, events, _ = case(1)
    app = compile_app(text).app
    layout = DataDirectory(tmp_path)
    load_logs(app, events, layout)
    inputs = InputLogs({s.name: str(layout.log_directory(s.name)) for s in app.inputs})
    first, last = inputs.earliest(), inputs.heads()
    clock = inputs.clock_at(first)
    batch = MicroBatch(BatchRange(0, first, last, clock, inputs.clock_at(last)), None, inputs)
    assert batch.table is batch.table
    clocks = batch.table.column("_clock").to_pylist()
    assert clocks == sorted(clocks)
    inputs.close()


def test_only_rows_that_nobody_reads_in_the_driver_are_encoded_by_tasks(tmp_path):
    app = compile_app(
        "define stream S (k int); from S select k insert into A; from A select k insert into B;"
    ).app
    plan = plan_app(app, ())
    with_log = SegmentWriter.open(tmp_path / "B", app.stream("B").schema)
    writers = {"B": with_log, "A": SimpleNamespace()}
    assert list(find_targets(plan, {"S": "s"}, writers)) == ["B"]
    with_log.close()
