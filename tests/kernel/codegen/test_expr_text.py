"""Null rules and Java's numbers, each against what Java does."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.kernel_plans import P, V, app_of, kernel_of, query, runs

from edgewise.errors import SetupError
from edgewise.event.types import INT_MAX, INT_MIN, LONG_MAX, AttrType
from edgewise.plan.exprs import And, Arith, Call, Compare, Const, IsNull, Not, Or

INT, LONG, FLOAT, DOUBLE, BOOL = (
    AttrType.INT, AttrType.LONG, AttrType.FLOAT, AttrType.DOUBLE, AttrType.BOOL,
)  # fmt: skip
NULL_INT = Const(INT, None)
YES, NO, NULL_BOOL = Const(BOOL, value=True), Const(BOOL, value=False), Const(BOOL, None)


def evaluate(expr, row=("a", 7, 2.5)):
    kernel = kernel_of(app_of(query({"x": expr})))
    for run in runs([(1000, row)]):
        kernel.feed(run)
    return kernel.take()[0].data[0]


def arith(kind, op, left, right):
    return evaluate(Arith(kind, op, Const(kind, left), Const(kind, right)))


@pytest.mark.parametrize(
    ("kind", "op", "left", "right", "result"),
    [
        (INT, "+", INT_MAX, 1, INT_MIN),
        (INT, "*", INT_MAX, 2, -2),
        (LONG, "+", LONG_MAX, 1, -LONG_MAX - 1),
        (INT, "/", -7, 2, -3),
        (INT, "/", 7, -2, -3),
        (INT, "%", -7, 2, -1),
        (INT, "%", 7, -2, 1),
        (INT, "/", 7, 0, None),
        (INT, "%", 7, 0, None),
        (DOUBLE, "/", 7.0, 0.0, None),
        (DOUBLE, "%", -7.5, 2.0, -1.5),
        (FLOAT, "+", 0.1, 0.2, 0.30000001192092896),
        (FLOAT, "/", 1.0, 3.0, 0.3333333432674408),
        (FLOAT, "%", 1.0, 0.0, None),
    ],
)
def test_arithmetic_is_java_s(kind, op, left, right, result):
    assert arith(kind, op, left, right) == result


@given(st.integers(INT_MIN, INT_MAX), st.integers(INT_MIN, INT_MAX).filter(bool))
def test_division_truncates_and_the_rest_completes_it(left, right):
    quotient = arith(INT, "/", left, right)
    rest = arith(INT, "%", left, right)
    if (left, right) != (INT_MIN, -1):
        assert abs(quotient) == abs(left) // abs(right)
        assert quotient * right + rest == left


@pytest.mark.parametrize("op", ["+", "-", "*", "/", "%"])
def test_arithmetic_with_null_is_null(op):
    assert evaluate(Arith(INT, op, V, Const(INT, 3)), ("a", None, None)) is None
    assert evaluate(Arith(DOUBLE, op, V, P), ("a", 1, None)) is None
    assert evaluate(Arith(INT, op, Arith(INT, "+", V, V), V), ("a", None, None)) is None


@pytest.mark.parametrize("op", ["<", "<=", ">", ">=", "=="])
def test_a_comparison_with_null_is_false(op):
    for left, right in ((V, NULL_INT), (NULL_INT, V), (V, Const(INT, 1)), (V, V)):
        assert evaluate(Compare(op, left, right), ("a", None, None)) is False
    assert evaluate(Compare(op, V, P), ("a", 1, None)) is False


def test_unequal_with_null_is_true():
    for left, right in ((V, NULL_INT), (V, Const(INT, 1)), (V, V), (V, P)):
        assert evaluate(Compare("!=", left, right), ("a", None, None)) is True


def test_numbers_compare_as_java_promotes_them():
    assert evaluate(Compare("==", Const(FLOAT, 1.1), Const(DOUBLE, 1.1))) is False
    assert evaluate(Compare("==", Const(LONG, 2**24 + 1), Const(FLOAT, 2.0**24))) is True
    assert evaluate(Compare("==", Const(INT, 2), Const(DOUBLE, 2.0))) is True


@pytest.mark.parametrize("left", [YES, NO, NULL_BOOL])
@pytest.mark.parametrize("right", [YES, NO, NULL_BOOL])
def test_and_or_not_read_null_as_false(left, right):
    truth = (bool(left.value), bool(right.value))
    assert evaluate(And(left, right)) is all(truth)
    assert evaluate(Or(left, right)) is any(truth)
    assert evaluate(Not(left)) is (not truth[0])


def test_is_null():
    assert evaluate(IsNull(V), ("a", None, 1.0)) is True
    assert evaluate(IsNull(V)) is False
    assert evaluate(IsNull(Const(INT, 3))) is False


def test_functions_that_are_inlined():
    assert evaluate(Call(INT, "ifThenElse", (NULL_BOOL, V, Const(INT, 1)))) == 1
    assert evaluate(Call(INT, "coalesce", (V, Const(INT, 1))), ("a", None, None)) == 1
    assert evaluate(Call(LONG, "eventTimestamp", ())) == 1000
    assert evaluate(Call(LONG, "currentTimeMillis", ())) == 1000
    assert len(evaluate(Call(AttrType.STRING, "UUID", ()))) == 36


def test_a_function_that_is_not_known_is_named():
    with pytest.raises(SetupError, match="moon:phase"):
        evaluate(Call(INT, "moon:phase", ()))
