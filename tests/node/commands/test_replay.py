import random

import pytest

from edgewise.errors import BadEvent, SetupError
from edgewise.event.event import Event, EventKind
from edgewise.lang import compile_app
from edgewise.node.app import load
from edgewise.node.commands import replay
from edgewise.node.data_dir import DataDirectory

APP = compile_app(
    "define stream S (k string, v int); from S[v > 1] select k, v insert into O;"
).app


def read(*lines):
    return list(replay.read_events([line.encode() for line in lines], APP))


def test_data_is_a_list_or_an_object_and_a_line_may_only_move_time():
    assert read(
        '{"stream": "S", "ts": 1, "data": ["a", 2]}',
        "",
        '{"stream": "S", "ts": 2, "data": {"v": 3, "k": null}}',
        '{"ts": 9}',
    ) == [
        Event("S", 1, ("a", 2)),
        Event("S", 2, (None, 3)),
        Event("", 9, (), EventKind.TICK),
    ]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("nonsense", "malformed"),
        ('{"stream": "S"}', "ts"),
        ('{"stream": "X", "ts": 1, "data": []}', "no stream 'X'; this app reads S"),
        ('{"stream": "S", "ts": 1}', "needs 'data'"),
        ('{"stream": "S", "ts": 1, "data": ["a"]}', "has 2 attributes, got 1"),
        ('{"stream": "S", "ts": 1, "data": {"k": "a"}}', "field 'v': is missing"),
        ('{"stream": "S", "ts": 1, "data": {"k": "a", "v": 1, "w": 1}}', "field 'w'"),
        ('{"stream": "S", "ts": 1, "data": ["a", "b"]}', "field 'v': must be int, got string"),
        ('{"stream": "S", "ts": 1, "data": ["a", 1], "extra": 1}', "extra"),
        ("[" * 5000, "event 1"),
    ],
)
def test_a_bad_line_is_named_with_its_reason(line, reason):
    with pytest.raises(BadEvent, match="event 1") as found:
        read(line)
    assert reason in str(found.value)


def test_rows_are_lines_of_json():
    [row] = replay.replay(APP, read('{"stream": "S", "ts": 1, "data": ["a", 2]}'), "embedded")
    assert replay.encode_row(row) == b'{"stream":"O","ts":1,"data":["a",2],"kind":"current"}'


def test_an_app_without_an_input_has_no_time_on_logs():
    app = compile_app("define trigger T at every 1 sec; from T select 1 as n insert into O;").app
    with pytest.raises(SetupError, match="reads no stream"):
        list(replay.replay(app, [], "batch"))


def test_objects_go_through_a_log_as_they_came(tmp_path):
    app = compile_app("define stream S (k string, o object); from S select o insert into O;").app
    events = [Event("S", n, ("a", o)) for n, o in enumerate([{"x": [1, None]}, [2], None, "t"])]
    layout = DataDirectory(tmp_path)
    replay.load_logs(app, events, layout)
    found = replay.read_rows(layout.log_directory("S"), app.stream("S").schema)
    assert [e.data for e in found] == [e.data for e in events]


def test_streams_are_merged_by_time_and_keep_their_own_order():
    rows = [Event("B", 5, ()), Event("A", 7, ()), Event("A", 3, ()), Event("B", 6, ())]
    merged = [(r.stream, r.ts) for r in replay.merge_by_time(rows, ["A", "B"])]
    assert merged == [("B", 5), ("B", 6), ("A", 7), ("A", 3)]


def test_an_unknown_engine_is_refused():
    with pytest.raises(SetupError, match="choose one of"):
        replay.replay(APP, [], "quantum")


SPREAD = """
from edgewise import eep
from edgewise.plan.declare import aggregate

@aggregate("spread", "number", returns="double", samples=(1, 2.5, -3))
class Spread(eep.Aggregate):
    invertible = False
    def init(self):
        return ()
    def accumulate(self, state, value):
        return self.merge(state, (value, value))
    def merge(self, earlier, later):
        if not earlier or not later:
            return earlier or later
        return (min(earlier[0], later[0]), max(earlier[1], later[1]))
    def emit(self, state):
        return float(state[1] - state[0]) if state else None
"""
SPREADS = """
define stream S (k string, v int);
from S#window.length(5) select k, spread(v) as s group by k having s > 1.0 insert into Grouped;
partition with (k of S) begin
  from S#window.timeBatch(40) select k, spread(v) as s, count() as n insert into Parted;
end;
from S select spread(v) as s insert into Total;
"""


@pytest.mark.spark
@pytest.mark.parametrize("engine", ["spark", "batch"])
def test_a_users_own_aggregate_gives_the_same_rows_on_spark(spark, tmp_path, engine):
    """Its state is restored between micro-batches, and its module is in a file beside the app."""
    functions, app_file = tmp_path / f"spread_on_{engine}.py", tmp_path / "app.siddhi"
    functions.write_text(SPREAD)
    app_file.write_text(SPREADS)
    app = load.load(app_file, [str(functions)]).app
    dice = random.Random(5)
    rows = [(dice.choice("abc"), dice.randint(-9, 9)) for _ in range(80)]
    events = [Event("S", 1000 + 7 * n, row) for n, row in enumerate(rows)]
    expected = list(replay.replay(app, events, "embedded"))
    config = {"master": "local[2]", "partitions": 2, "rows_max": 17}
    found = list(replay.replay(app, events, engine, **config))
    assert {row.stream for row in expected} == {"Grouped", "Parted", "Total"}
    plain = [(r.stream, r.ts, r.data, r.kind) for r in expected]
    assert [(r.stream, r.ts, r.data, r.kind) for r in found] == plain
