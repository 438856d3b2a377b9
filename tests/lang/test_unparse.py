"""Parse, write down, parse: the same tree."""

import pytest
from hypothesis import given, settings
from tests.support.conformance_cases import cases
from tests.support.parsed_trees import expression, parsed
from tests.support.random_trees import apps, expressions

from edgewise.lang.unparse import unparse, unparse_app, write_name, write_string


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
    assert write_name("price") == "price"
    assert write_name("select") == "`select`"
    assert write_name("two words") == "`two words`"
    assert write_string("it's") == '"it\'s"'
    assert write_string('say "x"!') == '"""say "x"!"""'
