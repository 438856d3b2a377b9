"""The examples of docs/language.md give the same rows on all three engines."""

import dataclasses

import pytest
from tests.lang.test_docs import BLOCKS, VALUES

from edgewise.engines.spark.engine import SparkApp, SparkConfig
from edgewise.errors import AppError
from edgewise.event.event import Event, Kind
from edgewise.lang import compile_app
from edgewise.log.segment import SegmentWriter
from edgewise.node.layout import Layout
from edgewise.node.replay import _load, _until_let_go, merge, replay, rows_of


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
    return [*made, Event("", 3_600_000, (), Kind.MARK)]


def rows(found):
    return [dataclasses.replace(e, at=0) for e in found]


@pytest.mark.parametrize("app", list(examples()))
def test_in_the_driver(tmp_path, app):
    layout = Layout(tmp_path)
    _load(app, _until_let_go(app, events(app)), layout)
    writers = {s.name: SegmentWriter.open(layout.log(s.name), s.schema) for s in app.outputs}
    logs = {s.name: layout.log(s.name) for s in app.inputs}
    job = SparkApp(
        None,
        app,
        logs=logs,
        writers=writers,
        checkpoint=tmp_path / "checkpoint",
        config=SparkConfig(partitions=3),
    )
    job.batch({s: min(3, job.inputs.heads()[s]) for s in logs})
    job.batch()
    for part in (job, *writers.values()):
        part.close()
    streams = [s.name for s in app.outputs]
    found = merge((r for s in app.outputs for r in rows_of(layout.log(s.name), s.schema)), streams)
    assert rows(found) == rows(replay(app, events(app), "embedded"))


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.timeout(600)
@pytest.mark.parametrize("engine", ["spark", "batch"])
@pytest.mark.parametrize("app", list(examples()))
def test_in_tasks(spark, app, engine):
    config = {"master": "local[2]", "small_batch_rows": 0, "partitions": 2}
    found = rows(replay(app, events(app), engine, **config))
    assert found == rows(replay(app, events(app), "embedded"))
