"""The embedded engine on logs, cut anywhere, stopped anywhere: the same rows."""

import random

import pytest
from tests.engines.spark.slices import case

from edgewise.engines.live import LiveApp
from edgewise.lang import compile_app
from edgewise.log.segment import SegmentWriter
from edgewise.node.layout import Layout
from edgewise.node.replay import _load, _rows, merge, replay


def open_live(app, layout, writers, rows_max):
    return LiveApp(
        app,
        logs={s.name: layout.log(s.name) for s in app.inputs},
        writers=writers,
        checkpoint=layout.checkpoint("app"),
        rows_max=rows_max,
    )


@pytest.mark.parametrize("seed", range(20))
def test_steps_of_any_size_with_restarts_in_between(tmp_path, seed):
    text, events, _ = case(seed)
    app = compile_app(text).app
    layout = Layout(tmp_path)
    _load(app, events, layout)
    writers = {s.name: SegmentWriter.open(layout.log(s.name), s.schema) for s in app.outputs}
    dice = random.Random(seed)
    live = open_live(app, layout, writers, dice.choice([1, 7, 1000]))
    while live.step(0):
        if dice.random() < 0.2:
            live.close()
            live = open_live(app, layout, writers, dice.choice([1, 7, 1000]))
    live.close()
    names = [s.name for s in app.outputs]
    found = merge((r for s in app.outputs for r in _rows(layout.log(s.name), s.schema)), names)
    for writer in writers.values():
        writer.close()
    expected = replay(app, events, "embedded")
    assert [(e.stream, e.ts, e.data) for e in found] == [
        (e.stream, e.ts, e.data) for e in expected
    ]
