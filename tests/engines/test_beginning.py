"""What counts from the app's first event on does so in every fragment, on every engine."""

import random

import pytest
from tests.engines.spark.slices import in_driver, plain

from edgewise.engines import beginning
from edgewise.engines.beginning import Beginning
from edgewise.engines.host import Cut
from edgewise.engines.inputs import Inputs
from edgewise.engines.live import LiveApp
from edgewise.event.event import Event, Kind
from edgewise.lang import compile_app
from edgewise.log.segment import SegmentWriter
from edgewise.node.layout import Layout
from edgewise.node.replay import _load, _until_let_go, merge, replay, rows_of
from edgewise.plan.rules.keys import split

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
            Event("", now, (), Kind.MARK) if mark else Event(stream, now - behind, ("a", n))
        )
    return compile_app(text).app, made, dice


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("query", QUERIES)
def test_every_fragment_begins_with_the_app(tmp_path, query, seed):
    app, events, dice = case(query, seed)
    assert len(split(app)) == 2
    expected = plain(replay(app, events, "embedded"))
    assert in_driver(tmp_path / "spark", app, events, dice) == expected
    assert live(tmp_path / "live", app, events, dice) == expected


def live(path, app, events, dice):
    layout = Layout(path)
    _load(app, _until_let_go(app, events), layout)
    writers = {s.name: SegmentWriter.open(layout.log(s.name), s.schema) for s in app.outputs}
    logs = {s.name: layout.log(s.name) for s in app.inputs}
    job = LiveApp(
        app,
        logs=logs,
        writers=writers,
        checkpoint=layout.checkpoint("app"),
        rows_max=dice.choice([1, 7, 1000]),
    )
    while job.step(0):
        pass
    for part in (job, *writers.values()):
        part.close()
    rows = (r for s in app.outputs for r in rows_of(layout.log(s.name), s.schema))
    return plain(merge(rows, [s.name for s in app.outputs]))


@pytest.mark.parametrize("seed", range(10))
def test_a_look_at_the_first_rows_of_a_batch_is_enough(tmp_path, seed, monkeypatch):
    monkeypatch.setattr(beginning, "LOOK_ROWS", 1)
    app, events, _ = case(QUERIES[3], seed)
    _load(app, events, Layout(tmp_path))
    inputs = Inputs({s.name: str(Layout(tmp_path).log(s.name)) for s in app.inputs})
    start, end = inputs.earliest(), inputs.heads()
    cut = Cut(0, start, end, inputs.clock(start), inputs.clock(end))
    table = inputs.table(start, end, cut.clock_start)
    found = [Beginning(app, split(app)).of(cut, inputs, rows) for rows in (None, table)]
    assert found[0] == found[1] is not None
    inputs.close()
