import pytest
from tests.support.parsed_trees import expression, expression_problem

from edgewise.event.types import AttrType
from edgewise.lang.syntax.expr import (
    AttrRef,
    Binary,
    Call,
    Duration,
    InTable,
    IsNull,
    Literal,
    Logical,
    Not,
    StreamRef,
)

a, b, c = AttrRef("a"), AttrRef("b"), AttrRef("c")
one = Literal(AttrType.INT, 1)


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("a + b * c", Binary("+", a, Binary("*", b, c))),
        ("a - b - c", Binary("-", Binary("-", a, b), c)),
        ("a > b == c", Binary("==", Binary(">", a, b), c)),
        ("a or b and c", Logical("or", (a, Logical("and", (b, c))))),
        ("a and b and c", Logical("and", (a, b, c))),
        ("(a and b) and c", Logical("and", (Logical("and", (a, b)), c))),
        ("not a == b", Binary("==", Not(a), b)),
        ("not (a == b)", Not(Binary("==", a, b))),
        ("a == b in T", InTable(Binary("==", a, b), "T")),
        ("a is null", IsNull(a)),
        ("e1[0] is null", IsNull(StreamRef("e1", "", 0))),
        ("e1[last-1].a", AttrRef("a", StreamRef("e1", "", -2))),
        ("#S.a", AttrRef("a", StreamRef("S", "#"))),
        ("-1", Literal(AttrType.INT, -1)),
        ("a -1", Binary("-", a, one)),
        ("1 min 30 sec", Duration(90_000)),
        ("1 YEAR", Duration(31_556_900_000)),
        ("str:length(a)", Call("length", (a,), "str")),
        ("count()", Call("count")),
        ("f(*)", Call("f", star=True)),
        ("and(a)", Call("and", (a,))),
        ("true", Literal(AttrType.BOOL, True)),
        ("'it'", Literal(AttrType.STRING, "it")),
        ("select + from", Binary("+", AttrRef("select"), AttrRef("from"))),
        ("not", AttrRef("not")),
    ],
)
def test_precedence_and_forms(text, tree):
    assert expression(text) == tree


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a +", "expected an expression, found the end of the app"),
        ("99999999999", "too large for int"),
        ("9223372036854775808L", "too large for long"),
        ("1 sec 1 min", "expected a smaller unit of time, found 'min'"),
        ("-a", "expected a number, found 'a'"),
        ("(1 + 2) is null", "'is null' takes an attribute, an element or a function call"),
        ("e1[0]", "expected '.' and an attribute, or 'is null', found the end of the app"),
        ("a b", "expected the end of the expression, found 'b'"),
    ],
)
def test_what_is_wrong(text, message):
    assert expression_problem(text) == message


def test_the_smallest_numbers_are_numbers():
    assert expression("-2147483648").value == -(2**31)
    assert expression("-9223372036854775808L").value == -(2**63)
