"""Parse, write down, parse: the same tree."""

import pytest
from hypothesis import given, settings
from tests.lang.conformance import cases
from tests.lang.forests import apps, expressions
from tests.lang.trees import expression, parsed

from edgewise.lang.unparse import name, string, unparse, unparse_app


@given(expressions)
def test_any_expression_comes_back(tree):
    assert expression(unparse(tree)) == tree


@settings(max_examples=150)
@given(apps)
def test_any_app_comes_back(tree):
    assert parsed(unparse_app(tree)) == tree


@pytest.mark.parametrize("step", [7, pytest.param(1, marks=pytest.mark.slow)])
def test_every_app_of_the_conformance_set_comes_back(step):
    for case in cases("siddhi_cases")[::step] + cases("generated")[::step]:
        tree = parsed(case["app"])
        assert parsed(unparse_app(tree)) == tree, case["id"]


def test_names_and_strings_are_quoted_where_they_must_be():
    assert name("price") == "price"
    assert name("select") == "`select`"
    assert name("two words") == "`two words`"
    assert string("it's") == '"it\'s"'
    assert string('say "x"!') == '"""say "x"!"""'
