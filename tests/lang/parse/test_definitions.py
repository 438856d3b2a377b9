import pytest
from tests.support.parsed_trees import parsed, problems

from edgewise.event.types import AttrType
from edgewise.lang.syntax.app import (
    AggregationDefinition,
    Column,
    FunctionDefinition,
    StreamDefinition,
    TableDefinition,
    TriggerDefinition,
    WindowDefinition,
)
from edgewise.lang.syntax.expr import Call, Duration, Literal
from edgewise.lang.syntax.query import Name

V = (Column("v", AttrType.INT),)


@pytest.mark.parametrize(
    ("text", "definition"),
    [
        ("define stream S (v int)", StreamDefinition(Name("S"), V)),
        ("DEFINE TABLE `a b` (v INT)", TableDefinition(Name("a b"), V)),
        (
            "define window W (v int) length(3) output expired events",
            WindowDefinition(Name("W"), V, Call("length", (Literal(AttrType.INT, 3),)), "expired"),
        ),
        ("define trigger X at every 1 sec", TriggerDefinition(Name("X"), Duration(1000))),
        ("define trigger X at 'start'", TriggerDefinition(Name("X"), None, "start")),
        (
            "define function f[python] return int { return 1 }",
            FunctionDefinition(Name("f"), "python", AttrType.INT, " return 1 "),
        ),
    ],
)
def test_definitions(text, definition):
    assert parsed(text).definitions == (definition,)


def test_aggregations():
    text = "define aggregation G from S select sum(v) as t group by k aggregate by ts every "
    found = parsed(text + "sec ... year").definitions[0]
    assert isinstance(found, AggregationDefinition)
    assert (found.durations, found.is_range) == (("sec", "year"), True)
    assert parsed(text + "sec, min").definitions[0].durations == ("sec", "min")


def test_what_is_wrong():
    assert problems("define strem S (v int)")[0].startswith("expected 'stream' or 'table'")
    assert problems("define stream S (v integer)")[0].startswith("expected a type: string, int")
    assert problems("define window W (v int) length(1) output")[0].startswith("expected 'all ev")
    assert problems("define aggregation G from S select v aggregate every week")[0].startswith(
        "expected one of sec"
    )
