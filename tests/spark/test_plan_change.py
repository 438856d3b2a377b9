"""An app changes under a checkpoint of Spark: queries that stay keep their state."""

import random
from contextlib import ExitStack

import pytest
from tests.engines.state.test_migrate import HEAD, ODD, PAIRS, PLANS, SUMS, events

from edgewise.engines.batch import run
from edgewise.engines.batch.inputs import InputLogs
from edgewise.lang import compile_app
from edgewise.log.segment_writer import SegmentWriter
from edgewise.node.commands.replay import load_logs, read_rows
from edgewise.node.data_dir import DataDirectory
from edgewise.spark.choose import SparkConfig
from edgewise.spark.execution import SparkEngine


class Changing:
    """An app on Spark's checkpoint whose text changes from batch to batch."""

    def __init__(self, directory, made):
        self.directory = DataDirectory(directory)
        load_logs(compile_app(HEAD + SUMS + ODD).app, made, self.directory)
        inputs = InputLogs({n: str(self.directory.log_directory(n)) for n in "ST"})
        self.heads = inputs.heads()
        self.at = inputs.earliest()
        self._inputs = inputs

    def advance(self, text, rows, *, partitions=2, orderly=True):
        """Run the next rows with this app; the difference to the app before."""
        app = compile_app(HEAD + text).app
        self.at = self._inputs.limit_end(self.at, self.heads, rows)
        with ExitStack() as stack:
            return self._run(app, stack, partitions, orderly)

    def _run(self, app, stack, partitions, orderly):
        writers = {
            s.name: SegmentWriter.open(self.directory.log_directory(s.name), s.schema)
            for s in app.outputs
        }
        for writer in writers.values():
            stack.callback(writer.close)
        run._live._kernels.clear()
        engine = SparkEngine.open(
            None,
            app,
            logs={s.name: self.directory.log_directory(s.name) for s in app.inputs},
            writers=writers,
            checkpoint=self.directory.checkpoint("app"),
            config=SparkConfig(partitions=partitions, save_interval_s=0 if orderly else 1e9),
        )
        engine.run_history({s.name: self.at[s.name] for s in app.inputs})
        if orderly:
            engine.close()
        elif engine.state is not None:
            engine.state.saver.close()
        return engine.change

    def rows(self, stream, text):
        schema = compile_app(HEAD + text).app.stream(stream).schema
        return [(e.ts, e.data) for e in read_rows(self.directory.log_directory(stream), schema)]


@pytest.mark.parametrize("seed", range(6))
def test_queries_that_stay_keep_their_state_whatever_else_changes(tmp_path, seed):
    """Other neighbours, other keys, other inputs, other partitions, a stop or a crash."""
    made, dice = events(seed), random.Random(seed)
    app = Changing(tmp_path, made)
    plans = [p for p in PLANS if SUMS in p]
    while app.at["S"] < app.heads["S"]:
        app.advance(
            dice.choice(plans),
            dice.choice([1, 5, 11]),
            partitions=dice.randint(1, 3),
            orderly=dice.random() < 0.5,
        )
    totals, expected = {}, []
    for e in made:
        if e.stream == "S":
            totals[e.data[0]] = totals.get(e.data[0], 0) + e.data[1]
            expected.append((e.ts, (e.data[0], totals[e.data[0]])))
    assert app.rows("Sums", SUMS) == expected


def test_the_difference_is_reported_and_old_state_goes(tmp_path):
    app = Changing(tmp_path, events(3, 40))
    assert app.advance(SUMS + PAIRS, 9) is None
    change = app.advance(ODD + SUMS + PAIRS, 9)
    assert set(change.kept) == {"query sums", "query pairs"}
    assert change.added == ("query odd",)
    assert app.advance(ODD + SUMS + PAIRS, 9) is None
    state = app.directory.checkpoint("app") / "state"
    assert [p.name for p in state.iterdir() if p.is_dir()] == ["1"]


def test_a_migration_that_was_interrupted_is_done_again(tmp_path, monkeypatch):
    made = events(4, 40)
    app = Changing(tmp_path, made)
    app.advance(SUMS + PAIRS, 9)
    before = dict(app.at)

    def crash(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("edgewise.spark.plan_change.PlanChange._write", crash)
        with pytest.raises(KeyboardInterrupt):
            app.advance(ODD + SUMS + PAIRS, 9)
    app.at = before
    assert "query sums" in app.advance(ODD + SUMS + PAIRS, 40).kept
    last = dict(data for _, data in app.rows("Sums", SUMS))
    expected = {}
    for e in made:
        if e.stream == "S":
            expected[e.data[0]] = expected.get(e.data[0], 0) + e.data[1]
    assert last == expected
