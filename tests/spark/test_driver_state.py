"""What the driver holds is saved when it pays, and written before tasks need it.

The rows that follow from it are proven in `test_execution`, with crashes between saves.
"""

import pytest
from tests.support.random_batches import case

from edgewise.engines.batch.inputs import InputLogs
from edgewise.lang import compile_app
from edgewise.log.segment_writer import SegmentWriter
from edgewise.node.commands.replay import load_logs
from edgewise.node.data_dir import DataDirectory
from edgewise.spark.choose import SparkConfig
from edgewise.spark.execution import SparkEngine


@pytest.fixture
def opened(tmp_path):
    """A function that opens an engine on one checkpoint, with no Spark: small batches only."""
    text, events, _ = case(2)
    app = compile_app(text).app
    layout = DataDirectory(tmp_path)
    load_logs(app, events, layout)
    logs = {s.name: str(layout.log_directory(s.name)) for s in app.inputs}
    writers = {
        s.name: SegmentWriter.open(layout.log_directory(s.name), s.schema) for s in app.outputs
    }

    def open_engine():
        return SparkEngine.open(
            None,
            app,
            logs=logs,
            writers=writers,
            checkpoint=layout.checkpoint("app"),
            config=SparkConfig(history_rows_max=10, save_interval_s=1e9),
        )

    yield open_engine, InputLogs(logs)
    for writer in writers.values():
        writer.close()


def test_batches_of_the_driver_write_no_state_until_it_stops(opened):
    open_engine, inputs = opened
    engine = open_engine()
    engine.run_history()
    assert engine.state.saver.saved.version == -1
    assert engine.checkpoint.read_committed_offsets() == inputs.earliest()
    engine.close()
    assert engine.checkpoint.read_committed_offsets() == inputs.heads()
    inputs.close()


def test_what_is_flushed_is_the_state_before_the_batch(opened):
    open_engine, inputs = opened
    engine = open_engine()
    engine.run_history()
    following = engine._find_next()
    engine.state.flush(following)
    assert engine.state.saver.saved.version == following.batch_id - 1
    assert engine.state.saver.saved.offsets == inputs.heads()
    engine.close()
    inputs.close()


def test_a_batch_that_was_saved_is_not_run_again(opened):
    open_engine, inputs = opened
    engine = open_engine()
    engine.run_history()
    done = engine._last
    engine.close()
    again = open_engine()
    assert not again.state.begin(done)
    again.close()
    inputs.close()
