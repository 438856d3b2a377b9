import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgewise.lang.lexer import tokenize
from edgewise.lang.report import Report
from edgewise.lang.source import SourceText
from edgewise.lang.tokens import Kind


def kinds(text):
    tokens, _ = tokenize(Report(SourceText(text)))
    return [(t.kind, t.value) for t in tokens[:-1]]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("12", Kind.INT),
        ("12L", Kind.LONG),
        ("1.5f", Kind.FLOAT),
        ("12F", Kind.FLOAT),
        ("1.5", Kind.DOUBLE),
        (".5", Kind.DOUBLE),
        ("5d", Kind.DOUBLE),
        ("1e3", Kind.DOUBLE),
        ("1.d", Kind.DOUBLE),
        ("`56$2 theta`", Kind.QUOTED),
        ('"""it\'s\ntwo lines"""', Kind.STRING),
        ("a_1", Kind.WORD),
    ],
)
def test_one_token_of_each_kind(text, kind):
    assert [k for k, _ in kinds(text)] == [kind]


def test_a_unit_right_after_its_number_is_two_tokens():
    assert kinds("5days 10min 3sec") == [
        (Kind.INT, "5"),
        (Kind.WORD, "days"),
        (Kind.INT, "10"),
        (Kind.WORD, "min"),
        (Kind.INT, "3"),
        (Kind.WORD, "sec"),
    ]


@pytest.mark.parametrize("text", ["`#a`", "`!a`", "`@a`"])
def test_a_quoted_name_does_not_begin_with_a_sign(text):
    report = Report(SourceText(f"from {text} select x"))
    tokenize(report)
    assert [p.message for p in report.errors()] == [f"a name cannot begin with '{text[1]}'"]


def test_comments_are_kept_aside():
    tokens, comments = tokenize(Report(SourceText("a -- one\n/* two\n*/ b /* to the end")))
    assert [t.value for t in tokens] == ["a", "b", ""]
    assert [c.text for c in comments] == ["-- one", "/* two\n*/", "/* to the end"]


def test_a_function_body_is_one_token_whatever_is_in_it():
    assert kinds("{ if x { '}' } }") == [(Kind.SCRIPT, " if x { '}' } ")]


def test_strange_characters_are_reported_and_skipped():
    report = Report(SourceText("a ~ b 'open"))
    tokens, _ = tokenize(report)
    assert [t.value for t in tokens] == ["a", "b", "", ";", ""]
    assert [p.message for p in report.errors()] == [
        "unexpected character '~'",
        "this string is not closed",
    ]


@given(st.text(max_size=200))
def test_tokens_and_what_lies_between_them_make_the_text(text):
    tokens, comments = tokenize(Report(SourceText(text)))
    places = sorted([(t.start, t.end) for t in tokens] + [(c.start, c.end) for c in comments])
    end = 0
    for start, stop in places:
        assert end <= start <= stop
        end = stop
    assert end <= len(text)
