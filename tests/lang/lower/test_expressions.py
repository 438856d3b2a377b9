import pytest
from tests.support.compiled_plans import query, refused, warned

from edgewise.event.types import NUMERIC, AttrType, promote
from edgewise.plan.exprs import (
    Agg,
    Call,
    Const,
    Field,
    InTable,
    IsNull,
    SlotIsNull,
    SlotTime,
)

LETTER = {AttrType.INT: "v", AttrType.LONG: "l", AttrType.FLOAT: "f", AttrType.DOUBLE: "p"}


def selected(text):
    return query(f"from S select {text} as x insert into X;").select.items[0].expr


@pytest.mark.parametrize("left", NUMERIC)
@pytest.mark.parametrize("right", NUMERIC)
def test_arithmetic_is_promoted(left, right):
    assert selected(f"{LETTER[left]} / {LETTER[right]}").type is promote(left, right)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("sum(v)", "long"),
        ("sum(f)", "double"),
        ("avg(v)", "double"),
        ("min(f)", "float"),
        ("count()", "long"),
        ("count(*)", "long"),
        ("distinctCount(k)", "long"),
        ("convert(k, 'int')", "int"),
        ("ifThenElse(b, v, 1)", "int"),
        ("coalesce(k, 'x')", "string"),
        ("STR:LENGTH(k)", "int"),
        ("math:round(p)", "long"),
        ("time:extract(l, 'day')", "int"),
        ("instanceOfString(o)", "bool"),
        ("1 min", "long"),
    ],
)
def test_result_types(text, kind):
    assert selected(text).type.value == kind


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("k + 1", "'+' needs numbers, this is string"),
        ("k > 'a'", "'>' needs numbers, not string and string"),
        ("k == 1", "cannot compare string with int"),
        ("o == o", "cannot compare object with object"),
        ("b and v", "'and' needs a bool, this is int"),
        ("not v == 1", "'not' needs a bool, this is int"),
        ("nope(v)", "there is no function 'nope'"),
        ("sum(v, l)", "'sum' takes 1 argument, not 2"),
        ("sum(k)", "'sum' takes int or long or float or double here, this is string"),
        ("coalesce(v, l)", "'coalesce' takes one type: int before, long here"),
        ("sum(max(v))", "'max' is an aggregate and not legal inside another"),
        ("cast(o, 'x')", "'x' is not a type; use one of string, int, long, float, double, bool"),
        ("convert(v, k)", "the type must be a constant in quotes, such as 'double'"),
        ("eventTimestamp(k)", "eventTimestamp takes the name of an input"),
    ],
)  # fmt: skip
def test_what_is_refused(text, message):
    assert refused(f"from S select {text} as x insert into X;") == [message]


def test_aggregates_have_no_place_in_filters():
    assert refused("from S[sum(v) > 1] insert into X;") == [
        "'sum' is an aggregate and not legal in a filter"
    ]


def test_a_float_constant_is_the_nearest_32_bit_number():
    assert selected("1.1f") == Const(AttrType.FLOAT, 1.100000023841858)
    assert selected("1e300f").value == float("inf")


def test_null_checks():
    assert selected("k is null") == IsNull(Field(AttrType.STRING, "S", "k"))
    pattern = query("from e1=A -> e2=B select e1 is null as x insert into X;")
    assert pattern.select.items[0].expr == SlotIsNull("e1")


def test_membership_sees_the_table_by_its_name():
    found = query("from A[T.k == k in T] insert into X;").input.before[0].condition
    assert isinstance(found, InTable)
    assert found.condition.left.slot == "T"
    assert found.condition.right.slot == "A"


def test_the_star_stands_for_every_attribute():
    found = query("from A select str:concat(*) as x insert into X;").select.items[0].expr
    assert isinstance(found, Call)
    assert [a.name for a in found.args] == ["k", "v"]
    assert selected("count(*)") == Agg(AttrType.LONG, "count", ())


def test_the_time_of_an_event():
    assert selected("eventTimestamp()") == SlotTime()
    assert selected("eventTimestamp(S)") == SlotTime("S")


def test_equality_of_fractions_is_legal_and_unwise():
    assert warned("from S[p == 1.5] insert into X;") == ["'==' between floating-point numbers"]
    assert warned("from S[v == 1] insert into X;") == []
