import pytest
from tests.support.compiled_plans import planned, refused

from edgewise.event.schema import Schema
from edgewise.plan.nodes import EventType


def test_tables_with_keys_and_indexes():
    text = "@PrimaryKey('a', 'b') @Index('c') define table U (a int, b int, c int);"
    table = planned(text).table("U")
    assert (table.primary_key, table.indexes) == (("a", "b"), ("c",))


def test_named_windows_let_everything_out_unless_told():
    app = planned("define window W (v int) length(3); define window X (v int) time(1 sec) "
                  "output expired events;")  # fmt: skip
    assert [w.events for w in app.windows] == [EventType.ALL, EventType.EXPIRED]


def test_triggers_are_streams():
    text = "define trigger X at every 1 sec; define trigger Y at 'start'; "
    app = planned(text + "define trigger Z at '0 0 12 * * ?';")
    assert app.stream("X").schema == Schema.of("X", triggered_time="long")
    assert [(t.every_ms, t.at_start, t.cron) for t in app.triggers] == [
        (1000, False, ""),
        (None, True, ""),
        (None, False, "0 0 12 * * ?"),
    ]
    assert "X" not in [s.name for s in app.inputs]


def test_faults_have_a_stream_of_their_own():
    app = planned("@OnError(action='STREAM') define stream R (v int); from !R insert into X;")
    assert app.stream("!R").schema == Schema.of("!R", v="int", _error="object")


def test_aggregations_carry_their_time():
    text = "define aggregation G from S select k, sum(v) as t group by k aggregate by l every "
    app = planned(text + "min ... day;")
    assert app.aggregations[0].durations == ("min", "hour", "day")
    assert app.aggregations[0].schema.names == ("AGG_TIMESTAMP", "k", "t")


def test_aggregations_say_how_long_they_keep_their_units():
    text = "define aggregation G from S select sum(v) as t aggregate every sec ... day;"
    purge = "@purge(enable='true', interval='5 sec', @retentionPeriod({})) "
    kept = planned(purge.format("seconds='2 min', days='all'") + text).aggregations[0]
    assert kept.purge_ms == 5000
    assert dict(kept.retention_ms) == {"sec": 120_000, "min": 86_400_000, "hour": 2_592_000_000}
    assert planned("@purge(enable='false') " + text).aggregations[0].purge_ms is None
    assert planned(text).aggregations[0].retention_ms == ()
    assert refused(purge.format("moons='1 min'") + text) == [
        "'moons' is no unit of an aggregation"
    ]


def test_functions_in_python():
    app = planned("define function f[python] return int { return data[0] + 1 }; "
                  "from S select f(v) as x insert into X;")  # fmt: skip
    assert app.functions[0].body.strip() == "return data[0] + 1"
    assert app.stream("X").schema == Schema.of("X", x="int")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("define stream R (a int, a int);", "attribute 'a' is defined twice"),
        ("@PrimaryKey('z') define table U (a int);", "'U' has no attribute 'z'"),
        ("@Index('a','b') define table U (a int, b int);", "an @Index has one column"),
        ("@Index('a') @Index('a') define table U (a int);", "column 'a' is indexed twice"),
        ("@PrimaryKey('a') @PrimaryKey('a') define table U (a int);",
            "a table has one @PrimaryKey"),
        ("define window W (a int) sum(a);", "there is no window 'sum'"),
        ("define trigger X at 'often';", "'often' is not a cron expression"),
        ("define function f[js] return int { return 1 };", "functions in js are not supported"),
        ("define function f[scala] return int { 1 };",
            "functions in scala do not run here: they need a Scala compiler in every worker"),
        ("define function f[JavaScript] return int { return ( };",
            "the body of 'f' is not JavaScript"),
        ("define function f[python] return int { return ( };", "the body of 'f' is not Python"),
        ("define aggregation G from S select k aggregate by v every sec;",
            "'aggregate by' needs a long or a string, not int"),
    ],
)  # fmt: skip
def test_what_is_refused(text, message):
    assert refused(text) == [message]
