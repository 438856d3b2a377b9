"""The examples of docs/reference/language.md give the same rows on all three engines."""

import dataclasses

import pytest
from tests.lang.test_docs import BLOCKS, VALUES

from edgewise.errors import AppError
from edgewise.event.event import Event, EventKind
from edgewise.lang import compile_app
from edgewise.log.segment_writer import SegmentWriter
from edgewise.node.commands.replay import (
    _add_final_tick,
    load_logs,
    merge_by_time,
    read_rows,
    replay,
)
from edgewise.node.data_dir import DataDirectory
from edgewise.spark.choose import SparkConfig
from edgewise.spark.execution import SparkEngine


def examples():
    """Those that compile and have an input."""
    for place, (kind, text) in enumerate(BLOCKS):
        if kind == "sql":
            try:
                app = compile_app(text).app
            except AppError:
                continue
            if app.inputs:
                yield pytest.param(app, id=f"block{place}")


def events(app):
    made = [
        Event(s.name, moment * 1000, tuple(VALUES[a.type] for a in s.schema.attributes))
        for moment in range(1, 6)
        for s in app.inputs
    ]
    return [*made, Event("", 3_600_000, (), EventKind.TICK)]


def rows(found):
    return [dataclasses.replace(e, at=0) for e in found]


@pytest.mark.parametrize("app", list(examples()))
def test_examples_give_the_expected_rows_in_the_driver(tmp_path, app):
    layout = DataDirectory(tmp_path)
    load_logs(app, _add_final_tick(app, events(app)), layout)
    writers = {
        s.name: SegmentWriter.open(layout.log_directory(s.name), s.schema) for s in app.outputs
    }
    logs = {s.name: layout.log_directory(s.name) for s in app.inputs}
    job = SparkEngine.open(
        None,
        app,
        logs=logs,
        writers=writers,
        checkpoint=tmp_path / "checkpoint",
        config=SparkConfig(partitions=3),
    )
    job.run_history({s: min(3, job.inputs.heads()[s]) for s in logs})
    job.run_history()
    for part in (job, *writers.values()):
        part.close()
    streams = [s.name for s in app.outputs]
    found = merge_by_time(
        (r for s in app.outputs for r in read_rows(layout.log_directory(s.name), s.schema)),
        streams,
    )
    assert rows(found) == rows(replay(app, events(app), "embedded"))


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.timeout(600)
@pytest.mark.parametrize("engine", ["spark", "batch"])
@pytest.mark.parametrize("app", list(examples()))
def test_examples_give_the_expected_rows_in_tasks(spark, app, engine):
    config = {"master": "local[2]", "small_batch_rows": 0, "partitions": 2}
    found = rows(replay(app, events(app), engine, **config))
    assert found == rows(replay(app, events(app), "embedded"))
