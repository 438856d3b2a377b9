"""The embedded engine on logs, cut anywhere, stopped anywhere: the same rows."""

import random
import shutil
from pathlib import Path

import pytest
from tests.support.random_batches import asked_case, case, late_case

from edgewise.engines.embedded.engine import EmbeddedEngine
from edgewise.engines.state.save_schedule import INTERVAL_S
from edgewise.errors import StateError
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

NEVER_S = 1e9


def open_live(app, layout, writers, rows_max, *, skip_to=None, save_interval_s=INTERVAL_S):
    return EmbeddedEngine.open(
        app,
        logs={s.name: layout.log_directory(s.name) for s in app.inputs},
        writers=writers,
        checkpoint=layout.checkpoint("app"),
        rows_max=rows_max,
        skip_to=skip_to,
        save_interval_s=save_interval_s,
    )


def crash(live):
    """What is in memory is gone; a save under way has ended or has not begun."""
    if live.saver._pool is not None:
        live.saver._pool.shutdown(cancel_futures=True)
    live.inputs.close()


@pytest.mark.parametrize("make", [case, late_case, asked_case])
@pytest.mark.parametrize("seed", range(15))
def test_crashes_between_saves_lose_and_double_nothing(tmp_path, seed, make):
    text, events, _ = make(seed)
    app = compile_app(text).app
    layout = DataDirectory(tmp_path)
    load_logs(app, _add_final_tick(app, events), layout)
    writers = {
        s.name: SegmentWriter.open(layout.log_directory(s.name), s.schema) for s in app.outputs
    }
    dice = random.Random(seed)

    def reopen():
        interval_s = dice.choice([0, 0.001, NEVER_S])
        return open_live(app, layout, writers, dice.choice([1, 7]), save_interval_s=interval_s)

    live = reopen()
    while live.run_batch(0):
        if dice.random() < 0.3:
            crash(live)
            live = reopen()
    live.close()
    names = [s.name for s in app.outputs]
    found = merge_by_time(
        (r for s in app.outputs for r in read_rows(layout.log_directory(s.name), s.schema)), names
    )
    for writer in writers.values():
        writer.close()
    expected = replay(app, events, "embedded")
    assert [(e.stream, e.ts, e.data) for e in found] == [
        (e.stream, e.ts, e.data) for e in expected
    ]


def test_a_batch_writes_no_state_and_a_restart_feeds_the_log_again(tmp_path):
    app = compile_app("define stream S (k int); from S select k, sum(k) as n insert into O;").app
    layout = DataDirectory(tmp_path)
    writers = {"O": SegmentWriter.open(layout.log_directory("O"), app.stream("O").schema)}
    load_logs(app, [Event("S", n, (n,)) for n in (1, 2, 3)], layout)
    live = open_live(app, layout, writers, 1, save_interval_s=NEVER_S)
    while live.run_batch(0):
        pass
    assert not list(Path(live.state).rglob("*.delta"))
    assert EmbeddedEngine.read_committed_offsets(layout.checkpoint("app")) == {"S": 0}
    crash(live)
    live = open_live(app, layout, writers, 1, save_interval_s=NEVER_S)
    assert live.saver.stats.replayed_rows == 2  # the third is computed again, with its output
    load_logs(app, [Event("S", 4, (4,))], layout)
    live.run_batch(0)
    live.close()
    assert EmbeddedEngine.read_committed_offsets(layout.checkpoint("app")) == {"S": 4}
    found = [e.data for e in read_rows(layout.log_directory("O"), app.stream("O").schema)]
    assert found == [(1, 1), (2, 3), (3, 6), (4, 10)]
    writers["O"].close()


@pytest.mark.parametrize("make", [case, late_case, asked_case])
@pytest.mark.parametrize("seed", range(15))
def test_batches_of_any_size_with_restarts_give_the_same_rows(tmp_path, seed, make):
    text, events, _ = make(seed)
    app = compile_app(text).app
    layout = DataDirectory(tmp_path)
    load_logs(app, _add_final_tick(app, events), layout)
    writers = {
        s.name: SegmentWriter.open(layout.log_directory(s.name), s.schema) for s in app.outputs
    }
    dice = random.Random(seed)
    live = open_live(app, layout, writers, dice.choice([1, 7, 1000]))
    while live.run_batch(0):
        if dice.random() < 0.2:
            live.close()
            live = open_live(app, layout, writers, dice.choice([1, 7, 1000]))
    live.close()
    names = [s.name for s in app.outputs]
    found = merge_by_time(
        (r for s in app.outputs for r in read_rows(layout.log_directory(s.name), s.schema)), names
    )
    for writer in writers.values():
        writer.close()
    expected = replay(app, events, "embedded")
    assert [(e.stream, e.ts, e.data) for e in found] == [
        (e.stream, e.ts, e.data) for e in expected
    ]


def test_skipping_drops_the_state_and_batch_ids_go_on(tmp_path):
    app = compile_app("define stream S (k int); from S select k, sum(k) as n insert into O;").app
    layout = DataDirectory(tmp_path)
    load_logs(app, [Event("S", n, (n,)) for n in (1, 2, 3)], layout)
    writers = {"O": SegmentWriter.open(layout.log_directory("O"), app.stream("O").schema)}
    live = open_live(app, layout, writers, 2)
    assert EmbeddedEngine.read_committed_offsets(layout.checkpoint("app")) == {}
    live.run_batch(0)
    live.close()
    assert EmbeddedEngine.read_committed_offsets(layout.checkpoint("app")) == {"S": 2}
    for skip_to in ({"S": 3}, None):  # and the same once more, as after a restart
        live = open_live(app, layout, writers, 2, skip_to=skip_to)
        assert live.run_batch(0) == 0
        live.close()
    load_logs(app, [Event("S", 4, (4,)), Event("S", 5, (5,))], layout)
    live = open_live(app, layout, writers, 2)
    live.run_batch(0)
    found = [e.data for e in read_rows(layout.log_directory("O"), app.stream("O").schema)]
    assert found == [(1, 1), (2, 3), (4, 4), (5, 9)]
    for part in (live, *writers.values()):
        part.close()


def test_without_its_checkpoint_all_is_computed_again_and_nothing_is_lost(tmp_path):
    """Its steps begin at 0 once more, the output logs know those numbers of another."""
    app = compile_app("define stream S (k int); from S select k, sum(k) as n insert into O;").app
    layout = DataDirectory(tmp_path)
    writers = {"O": SegmentWriter.open(layout.log_directory("O"), app.stream("O").schema)}
    for events in ([1, 2, 3], [4]):
        load_logs(app, [Event("S", n, (n,)) for n in events], layout)
        live = open_live(app, layout, writers, 1)
        while live.run_batch(0):
            pass
        live.close()
        shutil.rmtree(layout.checkpoint("app"))
    found = [e.data for e in read_rows(layout.log_directory("O"), app.stream("O").schema)]
    assert found == [(1, 1), (2, 3), (3, 6), (1, 1), (2, 3), (3, 6), (4, 10)]
    writers["O"].close()


def test_a_row_of_a_timer_has_the_capture_time_of_the_idle_tick(tmp_path):
    app = compile_app(
        "define stream S (k int); from S#window.time(1 sec) select k insert all events into O;"
    ).app
    layout = DataDirectory(tmp_path)
    writers = {"O": SegmentWriter.open(layout.log_directory("O"), app.stream("O").schema)}
    load_logs(
        app, [Event("S", 1000, (1,)), Event("", 5000, (), EventKind.TICK)], layout
    )  # lines 1 and 2
    live = open_live(app, layout, writers, 1)
    while live.run_batch(0):
        pass
    found = [(e.kind, e.at) for e in read_rows(layout.log_directory("O"), app.stream("O").schema)]
    assert found == [(EventKind.CURRENT, 1), (EventKind.EXPIRED, 2)]
    for part in (live, *writers.values()):
        part.close()


def test_of_two_engines_on_one_directory_only_one_continues(tmp_path):
    """One that was stopped for long comes back and does not know that another took its place."""
    text, events, _ = case(1)
    app = compile_app(text).app
    layout = DataDirectory(tmp_path)
    load_logs(app, events, layout)
    writers = {
        s.name: SegmentWriter.open(layout.log_directory(s.name), s.schema) for s in app.outputs
    }
    old, new = (open_live(app, layout, writers, 1) for _ in range(2))
    new.run_batch(0)
    with pytest.raises(StateError, match="written by another engine"):
        old.run_batch(0)
    new.run_batch(0)
    for part in (old, new, *writers.values()):
        part.close()
