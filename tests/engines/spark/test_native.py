"""A native filter never loses an event that the kernel would keep."""

import itertools

import pytest

from edgewise.engines.embedded import Embedded
from edgewise.engines.spark.native import wanted
from edgewise.lang import compile_app
from edgewise.plan.rules.keys import split

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


def test_every_event_the_reference_keeps_is_kept(spark):
    schema = "s0_a int, s0_b int, s0_x double, s0_s string, place int"
    frame = spark.createDataFrame([(*row, i) for i, row in enumerate(ROWS)], schema).cache()
    pushed = 0
    for condition in CONDITIONS:
        app = compile_app(
            "define stream S (a int, b int, x double, s string);"
            f"from S[{condition}] select a insert into O;"
        ).app
        [fragment] = split(app)
        column = wanted(app, fragment, "S", "s0_")
        if column is None:
            continue
        pushed += 1
        kept = {r.place for r in frame.where(column).select("place").collect()}
        engine = Embedded(app)
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
    [fragment] = split(app)
    assert wanted(app, fragment, "S", "s0_") is None
