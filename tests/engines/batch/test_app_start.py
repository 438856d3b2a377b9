"""What counts from the app's first event on does so in every fragment, on every engine."""

import random

import pytest
from tests.support.random_batches import in_driver, plain

from edgewise.engines.batch import app_start
from edgewise.engines.batch.app_start import AppStartFinder
from edgewise.engines.batch.inputs import InputLogs
from edgewise.engines.batch.job import BatchRange
from edgewise.engines.embedded.engine import EmbeddedEngine
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
from edgewise.plan.rules.keys import split_into_fragments

STREAMS = "define stream S (k string, v int); define stream T (k string, v int); "
UNREAD = "define stream U (v int); "
QUERIES = (
    (
        "define trigger G at every 700 milliseconds; {} from S select v insert into O; "
        "from G select triggered_time as t insert into P;"
    ),
    (
        "define trigger G at 'start'; {} from S select v insert into O; "
        "from G select triggered_time as t insert into P;"
    ),
    (
        "define trigger G at '*/2 * * * * ?'; {} from S select v insert into O; "
        "from G#window.length(2) select count() as n insert into P;"
    ),
    (
        "{} from S select v insert into O; "
        "from T select v output all every 900 milliseconds insert into P;"
    ),
    (
        "{} from S select v insert into O; from T#window.time(3 sec) select count() as n "
        "output snapshot every 900 milliseconds insert into P;"
    ),
    "{} from S select v insert into O; from not T for 2 sec -> e=T select e.v as v insert into P;",
    (
        "{} from S#window.timeBatch(1 sec) select v insert into O; "
        "from every not T for 1 sec select 1 as n insert into P;"
    ),
)


def case(query, seed):
    dice, now, made = random.Random(seed), 1000, []
    late = dice.random() < 0.5
    text = query.format(
        STREAMS.replace("define", "@lateness('1 sec') define") if late else STREAMS
    )
    text = text if text.startswith("define trigger") else UNREAD + text
    for n in range(40):
        now += dice.choice([0, 10, 300, 800])
        behind = dice.choice([0, 400, 900]) if late else 0
        stream = dice.choice("ST" if n > 5 else dice.choice(["S", "T"]))
        mark = dice.random() < 0.1
        made.append(
            Event("", now, (), EventKind.TICK) if mark else Event(stream, now - behind, ("a", n))
        )
    return compile_app(text).app, made, dice


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("query", QUERIES)
def test_every_fragment_starts_with_the_app(tmp_path, query, seed):
    app, events, dice = case(query, seed)
    assert len(split_into_fragments(app)) == 2
    expected = plain(replay(app, events, "embedded"))
    assert in_driver(tmp_path / "spark", app, events, dice) == expected
    assert live(tmp_path / "live", app, events, dice) == expected


def live(path, app, events, dice):
    layout = DataDirectory(path)
    load_logs(app, _add_final_tick(app, events), layout)
    writers = {
        s.name: SegmentWriter.open(layout.log_directory(s.name), s.schema) for s in app.outputs
    }
    logs = {s.name: layout.log_directory(s.name) for s in app.inputs}
    job = EmbeddedEngine.open(
        app,
        logs=logs,
        writers=writers,
        checkpoint=layout.checkpoint("app"),
        rows_max=dice.choice([1, 7, 1000]),
    )
    while job.run_batch(0):
        pass
    for part in (job, *writers.values()):
        part.close()
    rows = (r for s in app.outputs for r in read_rows(layout.log_directory(s.name), s.schema))
    return plain(merge_by_time(rows, [s.name for s in app.outputs]))


@pytest.mark.parametrize("seed", range(10))
def test_the_first_rows_of_a_batch_are_enough_to_find_the_first_event(tmp_path, seed, monkeypatch):
    monkeypatch.setattr(app_start, "FIRST_ROWS", 1)
    app, events, _ = case(QUERIES[3], seed)
    load_logs(app, events, DataDirectory(tmp_path))
    inputs = InputLogs(
        {s.name: str(DataDirectory(tmp_path).log_directory(s.name)) for s in app.inputs}
    )
    start, end = inputs.earliest(), inputs.heads()
    cut = BatchRange(0, start, end, inputs.clock_at(start), inputs.clock_at(end))
    table = inputs.read_table(start, end, cut.clock_start)
    found = [
        AppStartFinder(app, split_into_fragments(app)).find(cut, inputs, rows)
        for rows in (None, table)
    ]
    assert found[0] == found[1] is not None
    inputs.close()
