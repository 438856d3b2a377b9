import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.parsed_trees import expression as parsed

from edgewise.errors import AppError
from edgewise.lang.fluent import avg, call, col, count, lit, max_, min_, std_dev, sum_
from edgewise.lang.fluent.terms import distinct_count, duration, expression, value
from edgewise.lang.syntax.expr import Duration
from edgewise.lang.unparse import unparse


@pytest.mark.parametrize(
    ("term", "text"),
    [
        (col.v + 1 > 5, "v + 1 > 5"),
        ((col.a - 1) * (col.b / 2) % 3, "(a - 1) * (b / 2) % 3"),
        ((col.v > 5) & ~col.k.is_null() | (col.k == "x"), "v > 5 and not (k is null) or k == 'x'"),
        (col.of("e1", -1).v >= col.of("e2").v, "e1[last].v >= e2.v"),
        (col["two words"] != 2.5, "`two words` != 2.5"),
        (lit(True), "true"),
        (col.v < 2**40, f"v < {2**40}L"),
        (col.v <= 1, "v <= 1"),
        (call("str:length", col.k), "str:length(k)"),
        (sum_(col.v), "sum(v)"),
        (avg(col.v), "avg(v)"),
        (min_(col.v), "min(v)"),
        (max_(col.v), "max(v)"),
        (count(), "count()"),
        (std_dev(col.v), "stdDev(v)"),
        (distinct_count(col.v), "distinctCount(v)"),
    ],
)
def test_python_reads_as_siddhiql(term, text):
    assert term.node == parsed(text)


@given(st.one_of(st.booleans(), st.integers(-(2**63), 2**63 - 1), st.text("ab'", max_size=4)))
def test_values_come_back_as_they_are(given_value):
    assert parsed(unparse(value(given_value))).value == given_value


def test_an_expression_has_no_truth():
    with pytest.raises(TypeError, match="write & for and"):
        bool(col.v > 1)


def test_text_is_siddhiql_where_a_condition_is_asked_for():
    assert expression("v > 1") == parsed("v > 1")
    with pytest.raises(AppError, match="expected an expression"):
        expression("v >")


def test_times():
    assert duration("1 min") == Duration(60_000)
    assert duration(5) == Duration(5)
    with pytest.raises(TypeError, match="is not a time"):
        duration("5")
