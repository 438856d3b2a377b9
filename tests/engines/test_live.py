"""The embedded engine on logs, cut anywhere, stopped anywhere: the same rows."""

import random
import shutil

import pytest
from tests.engines.spark.slices import asked_case, case, late_case

from edgewise.engines import host
from edgewise.engines.live import LiveApp
from edgewise.errors import StateError
from edgewise.event.event import Event, Kind
from edgewise.lang import compile_app
from edgewise.log.segment import SegmentWriter
from edgewise.node.layout import Layout
from edgewise.node.replay import _load, _until_let_go, merge, replay, rows_of


def open_live(app, layout, writers, rows_max, skip_to=None):
    return LiveApp(
        app,
        logs={s.name: layout.log(s.name) for s in app.inputs},
        writers=writers,
        checkpoint=layout.checkpoint("app"),
        rows_max=rows_max,
        skip_to=skip_to,
    )


@pytest.mark.parametrize("make", [case, late_case, asked_case])
@pytest.mark.parametrize("seed", range(15))
def test_steps_of_any_size_with_restarts_in_between(tmp_path, seed, make):
    text, events, _ = make(seed)
    app = compile_app(text).app
    layout = Layout(tmp_path)
    _load(app, _until_let_go(app, events), layout)
    writers = {s.name: SegmentWriter.open(layout.log(s.name), s.schema) for s in app.outputs}
    dice = random.Random(seed)
    live = open_live(app, layout, writers, dice.choice([1, 7, 1000]))
    while live.step(0):
        if dice.random() < 0.2:
            live.close()
            live = open_live(app, layout, writers, dice.choice([1, 7, 1000]))
    live.close()
    names = [s.name for s in app.outputs]
    found = merge((r for s in app.outputs for r in rows_of(layout.log(s.name), s.schema)), names)
    for writer in writers.values():
        writer.close()
    expected = replay(app, events, "embedded")
    assert [(e.stream, e.ts, e.data) for e in found] == [
        (e.stream, e.ts, e.data) for e in expected
    ]


def test_what_is_skipped_takes_the_state_with_it_and_numbers_go_on(tmp_path, monkeypatch):
    app = compile_app("define stream S (k int); from S select k, sum(k) as n insert into O;").app
    layout = Layout(tmp_path)
    _load(app, [Event("S", n, (n,)) for n in (1, 2, 3)], layout)
    writers = {"O": SegmentWriter.open(layout.log("O"), app.stream("O").schema)}
    live = open_live(app, layout, writers, 2)
    assert LiveApp.reached(layout.checkpoint("app")) == {}
    live.step(0)
    live.close()
    assert LiveApp.reached(layout.checkpoint("app")) == {"S": 0}
    for skip_to in ({"S": 3}, None):  # and the same once more, as after a restart
        monkeypatch.setattr(host, "_LIVE", host.LiveKernels())
        live = open_live(app, layout, writers, 2, skip_to)
        assert live.step(0) == 0
        live.close()
    _load(app, [Event("S", 4, (4,)), Event("S", 5, (5,))], layout)
    live = open_live(app, layout, writers, 2)
    live.step(0)
    found = [e.data for e in rows_of(layout.log("O"), app.stream("O").schema)]
    assert found == [(1, 1), (2, 3), (4, 4), (5, 9)]
    for part in (live, *writers.values()):
        part.close()


def test_without_its_checkpoint_all_is_computed_again_and_nothing_is_lost(tmp_path, monkeypatch):
    """Its steps begin at 0 once more, the output logs know those numbers of another."""
    app = compile_app("define stream S (k int); from S select k, sum(k) as n insert into O;").app
    layout = Layout(tmp_path)
    writers = {"O": SegmentWriter.open(layout.log("O"), app.stream("O").schema)}
    for events in ([1, 2, 3], [4]):
        _load(app, [Event("S", n, (n,)) for n in events], layout)
        live = open_live(app, layout, writers, 1)
        while live.step(0):
            pass
        live.close()
        shutil.rmtree(layout.checkpoint("app"))
        monkeypatch.setattr(host, "_LIVE", host.LiveKernels())
    found = [e.data for e in rows_of(layout.log("O"), app.stream("O").schema)]
    assert found == [(1, 1), (2, 3), (3, 6), (1, 1), (2, 3), (3, 6), (4, 10)]
    writers["O"].close()


def test_what_a_mark_sets_in_motion_is_as_young_as_the_mark(tmp_path):
    app = compile_app(
        "define stream S (k int); from S#window.time(1 sec) select k insert all events into O;"
    ).app
    layout = Layout(tmp_path)
    writers = {"O": SegmentWriter.open(layout.log("O"), app.stream("O").schema)}
    _load(app, [Event("S", 1000, (1,)), Event("", 5000, (), Kind.MARK)], layout)  # lines 1 and 2
    live = open_live(app, layout, writers, 1)
    while live.step(0):
        pass
    found = [(e.kind, e.at) for e in rows_of(layout.log("O"), app.stream("O").schema)]
    assert found == [(Kind.CURRENT, 1), (Kind.EXPIRED, 2)]
    for part in (live, *writers.values()):
        part.close()


def test_of_two_engines_on_one_directory_only_one_goes_on(tmp_path):
    """One that was stopped for long comes back and does not know that another took its place."""
    text, events, _ = case(1)
    app = compile_app(text).app
    layout = Layout(tmp_path)
    _load(app, events, layout)
    writers = {s.name: SegmentWriter.open(layout.log(s.name), s.schema) for s in app.outputs}
    old, new = (open_live(app, layout, writers, 1) for _ in range(2))
    new.step(0)
    with pytest.raises(StateError, match="written by another engine"):
        old.step(0)
    new.step(0)
    for part in (old, new, *writers.values()):
        part.close()
