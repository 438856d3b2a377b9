"""A range of replay_range gives the rows that its events give, on every engine."""

import pytest
from tests.support.random_batches import case, late_case

from edgewise.errors import SetupError
from edgewise.event.event import Event, EventKind
from edgewise.lang import compile_app
from edgewise.node.commands.replay import load_logs, replay
from edgewise.node.commands.replay_range import replay_range
from edgewise.node.data_dir import DataDirectory


@pytest.fixture
def data(tmp_path):
    text, events, _ = case(3, 200)
    app = compile_app(text).app
    load_logs(app, events, DataDirectory(tmp_path))
    return app, events, tmp_path


def rows(found):
    return [(e.stream, e.ts, e.data, e.kind) for e in found]


def test_all_of_it_is_a_replay(data):
    app, events, path = data
    expected = rows(replay(app, events, "embedded"))
    assert expected
    assert rows(replay_range(app, path, "embedded")) == expected


@pytest.mark.parametrize("seed", range(8))
def test_marks_move_time_as_they_did_then(tmp_path, seed):
    """What was late because time had gone on is late again."""
    text, events, dice = late_case(seed)
    app = compile_app(text).app
    for at in sorted(dice.sample(range(1, len(events)), 3), reverse=True):
        now = max(e.ts for e in events[:at])
        events[at:at] = [Event("", now + dice.choice([500, 5000]), (), EventKind.TICK)]
    end = max(e.ts for e in events) + 60_000
    events.append(Event("", end, (), EventKind.TICK))
    load_logs(app, events, DataDirectory(tmp_path))
    assert rows(replay_range(app, tmp_path, "embedded")) == [
        row for row in rows(replay(app, events, "embedded")) if row[1] <= end
    ]


def span(app, events):
    """A range, and the events in it: by the clock of each stream, for each stream."""
    times = [e.ts for e in events]
    start, end = times[40], times[150]
    clocks, inside = dict.fromkeys([s.name for s in app.inputs], 0), []
    for event in events:
        for name in [event.stream] if event.stream else clocks:
            clocks[name] = max(clocks[name], event.ts)
            if start <= clocks[name] < end and event.kind is not EventKind.TICK:
                inside.append(event)
    return start, end, inside


def test_a_range_is_a_replay_of_its_events(data):
    app, events, path = data
    start, end, inside = span(app, events)
    assert 20 < len(inside) < 150
    found = list(replay_range(app, path, "embedded", start_ms=start, end_ms=end))
    assert found
    last = max(e.ts for e in found)
    expected = [r for r in rows(replay(app, inside, "embedded")) if r[1] <= last]
    assert rows(found)[: len(expected)] == expected


@pytest.mark.spark
@pytest.mark.parametrize("engine", ["batch", "spark"])
def test_a_range_gives_the_same_rows_on_spark(spark, data, engine):
    app, events, path = data
    start, end, _ = span(app, events)
    expected = rows(replay_range(app, path, "embedded", start_ms=start, end_ms=end))
    config = {"master": "local[2]", "partitions": 2, "rows_max": 17}
    assert rows(replay_range(app, path, engine, start_ms=start, end_ms=end, **config)) == expected


def test_a_directory_without_the_logs_of_the_app_is_said(data, tmp_path):
    with pytest.raises(SetupError, match="there is no log"):
        list(replay_range(data[0], tmp_path / "nowhere", "embedded"))
