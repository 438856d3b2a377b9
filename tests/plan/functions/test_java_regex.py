import pytest

from edgewise.errors import BadEvent
from edgewise.event.types import AttrType
from edgewise.plan.exprs import Const
from edgewise.plan.functions import java_regex


@pytest.mark.parametrize(
    ("pattern", "text", "whole"),
    [
        (r"\Qa.b\E+", "a.bb", True),
        (r"[a-z&&[^bc]]+", "adz", True),
        (r"[a-z&&[^bc]]+", "abz", False),
        (r"\p{Alpha}\p{Punct}", "a!", True),
        (r"\p{L}+", "\u00e9a", True),
        (r"\w+", "\u00e9", False),
        (r"(?i)ABC", "abc", True),
        (r"(?<year>\d{4})-\k<year>", "2024-2024", True),
        (r"a++b", "aab", True),
        (r".", "\r", False),
        (r"(?s).", "\r", True),
        (r"a$", "a\n", False),
        (r"\x{41}\0101\u0041", "AAA", True),
        (r"\h\R", " \r\n", True),
        (r"[^\d]", "a", True),
    ],
)
def test_expressions_mean_what_they_do_in_java(pattern, text, whole):
    assert java_regex.matches(pattern, text) == whole


@pytest.mark.parametrize("pattern", ["(", "[a", "a{2,1}", "\\", r"\y", "*a"])
def test_what_is_no_expression_is_said(pattern):
    assert "no regular expression" in java_regex.find_problem(pattern) or java_regex.find_problem(
        pattern
    )
    with pytest.raises(BadEvent):
        java_regex.compile_pattern(pattern)


@pytest.mark.parametrize(
    ("replacement", "result"),
    [("$2$1", "ba"), ("$0$0", "abab"), ("${x}", "a"), (r"\$1", "$1"), ("$12", "a2")],
)
def test_replacements_name_groups_as_in_java(replacement, result):
    assert java_regex.replace("ab", "(?<x>a)(b)", replacement) == result


@pytest.mark.parametrize("replacement", ["$", "$9", "${y}", "\\"])
def test_a_replacement_that_names_no_group_drops_the_event(replacement):
    with pytest.raises(BadEvent):
        java_regex.replace("ab", "(?<x>a)(b)", replacement)


@pytest.mark.parametrize(
    ("text", "pattern", "parts"),
    [
        ("a,b,,", ",", ["a", "b"]),
        (",a", ",", ["", "a"]),
        ("abc", "", ["a", "b", "c"]),
        ("", ",", [""]),
        (",", ",", []),
    ],
)
def test_texts_are_split_as_in_java(text, pattern, parts):
    assert java_regex.split(text, pattern) == parts


def test_a_constant_expression_is_checked_when_the_app_is_compiled():
    rule = java_regex.has_pattern(0)
    assert rule((Const(AttrType.STRING, "("),))
    assert not rule((Const(AttrType.STRING, "a"),))
    assert not rule((Const(AttrType.INT, 1),))
