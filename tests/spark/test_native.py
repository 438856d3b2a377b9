"""A native filter never loses an event that the kernel would keep."""

import itertools

import pytest

from edgewise.engines.embedded import InMemoryEngine
from edgewise.lang import compile_app
from edgewise.plan.functions import FUNCTIONS, TEXT, same, scalar
from edgewise.plan.rules.keys import split_into_fragments
from edgewise.spark.native import build_condition

pytestmark = pytest.mark.spark

CONDITIONS = [
    "a > 1",
    "a != b",
    "not (a == b)",
    "a + b > 3 and s == 'x'",
    "a * b - 2 <= 0 or s != 'y'",
    "x > 1.5",
    "x + a < 3.0",
    "not (x > 1.5)",
    "s is null",
    "not (s is null) and (a == 2 or b < 1)",
    "a / b > 1",
]
NUMBERS = [None, 0, 1, 2, 2147483647]
ROWS = [
    (a, b, x, s)
    for a, b, x, s in itertools.product(
        NUMBERS, NUMBERS, [None, 0.5, 2.5, float("nan")], [None, "x", "y"]
    )
]


def test_the_native_filter_keeps_every_event_that_the_reference_keeps(spark):
    schema = "s0_a int, s0_b int, s0_x double, s0_s string, place int"
    frame = spark.createDataFrame([(*row, i) for i, row in enumerate(ROWS)], schema).cache()
    pushed = 0
    for condition in CONDITIONS:
        app = compile_app(
            "define stream S (a int, b int, x double, s string);"
            f"from S[{condition}] select a insert into O;"
        ).app
        [fragment] = split_into_fragments(app)
        column = build_condition(app, fragment, "S", "s0_")
        if column is None:
            continue
        pushed += 1
        kept = {r.place for r in frame.where(column).select("place").collect()}
        engine = InMemoryEngine(app)
        for place, row in enumerate(ROWS):
            engine.send("S", place, row)
            if engine.take():
                assert place in kept, f"{condition} loses {row}"
    assert pushed >= 8


def test_a_stream_with_one_unfiltered_reader_is_not_filtered(spark):
    app = compile_app(
        "define stream S (a int); from S[a > 1] select a insert into O;"
        "from S select a insert into P;"
    ).app
    [fragment] = split_into_fragments(app)
    assert build_condition(app, fragment, "S", "s0_") is None


def test_events_that_no_element_of_a_pattern_can_take_stay_in_spark(spark):
    app = compile_app(
        "define stream S (k int, v int);"
        "from every e1=S[v > 95] -> e2=S[k == e1.k and v < 5]<1:2> within 1 sec "
        "select e1.v as a insert into O;"
    ).app
    [fragment] = split_into_fragments(app)
    frame = spark.createDataFrame([(1, v) for v in (0, 4, 5, 95, 96, None)], "s0_k int, s0_v int")
    kept = frame.where(build_condition(app, fragment, "S", "s0_")).collect()
    assert [row.s0_v for row in kept] == [0, 4, 96]


@pytest.mark.parametrize(
    "pattern",
    [
        "every e1=S[v > 95], e2=S[v < 5]",  # any event breaks a sequence
        "e1=S[v > 95] -> not S[v < 5] for 1 sec",  # any event may start the waiting of its key
        "every e1=S[v > 95] -> e2=S[v < e1.v]",  # e2 cannot be told without e1
        "every e1=S[v > 95] -> e2=S",
    ],
)
def test_patterns_that_need_every_event_get_every_event(pattern):
    app = compile_app(
        f"define stream S (v int); from {pattern} select e1.v as a insert into O;"
    ).app
    [fragment] = split_into_fragments(app)
    assert build_condition(app, fragment, "S", "s0_") is None


def test_a_function_may_be_an_expression_of_spark(spark):
    functions = FUNCTIONS.with_(scalar("my:sound", TEXT, returns=same, spark="soundex"))
    app = compile_app(
        "define stream S (s string); from S[my:sound(s) == 'R163'] select s insert into O;",
        functions=functions,
    ).app
    [fragment] = split_into_fragments(app)
    frame = spark.createDataFrame([("Robert",), ("Anna",)], "s0_s string")
    kept = frame.where(build_condition(app, fragment, "S", "s0_")).collect()
    assert [row.s0_s for row in kept] == ["Robert"]


STATELESS = """
define stream S (a int, b int, x double, s string);
define stream U (a int, b int, x double, s string);
from S[a > 0 or x + x >= 1.0] select a, a + b as c, s == 'x' as same, x * 2.0 as y insert into M;
from S select b as a, b * b as c, not (s is null) as same, x as y insert into O;
from M[c < 5 or same] select a, c - 1 as c, same, y insert into O;
from U[b != a or x != x] select a, b as c, a == b and s == 'y' as same, x as y insert into O;
"""


def test_a_fragment_without_state_is_spark_expressions_and_gives_the_same_rows(spark, tmp_path):
    import dataclasses

    from edgewise.event.event import Event
    from edgewise.node.commands.replay import replay
    from edgewise.plan.rules.native_spark import build_projections

    app = compile_app(STATELESS).app
    [fragment] = split_into_fragments(app)
    assert len(build_projections(app, fragment)) == 4
    events = [Event("SU"[i % 2], i, row) for i, row in enumerate(ROWS)]

    def rows(engine):
        return [repr(dataclasses.replace(e, at=0)) for e in replay(app, events, engine)]

    expected = rows("embedded")
    assert len(expected) > 200
    assert rows("batch") == expected
    assert rows("spark") == expected


@pytest.mark.parametrize(
    "query",
    [
        "from S select a / b as c insert into O;",
        "from S select str:length(s) as c insert into O;",
        "from S select a as c having c > 1 insert into O;",
    ],
)
def test_expressions_not_proven_equal_run_in_the_kernel(spark, query):
    from edgewise.plan.rules.native_spark import build_projections

    app = compile_app(f"define stream S (a int, b int, x double, s string); {query}").app
    [fragment] = split_into_fragments(app)
    assert build_projections(app, fragment) == []
