import pytest

from edgewise.lang.lexer import tokenize
from edgewise.lang.parse.cursor import NESTING_MAX, Cursor
from edgewise.lang.report import Refused, Report
from edgewise.lang.source import SourceText


def cursor(text):
    report = Report(SourceText(text))
    return Cursor(tokenize(report)[0], report)


def test_keywords_know_no_case_and_are_remembered_for_the_formatter():
    c = cursor("SELECT x")
    assert c.take_word("select")
    assert c.keywords == {0}
    assert not c.take_word("select")


def test_a_failure_names_what_it_found_and_what_is_close():
    c = cursor("form S")
    with pytest.raises(Refused):
        c.expect_word("from")
    assert c.report.errors()[0].message == "expected 'from', found 'form'"
    assert c.report.errors()[0].hint == "did you mean 'from'?"


def test_at_the_end_of_the_text_a_failure_points_after_the_last_token():
    c = cursor("a   \n\n")
    c.advance()
    with pytest.raises(Refused):
        c.expect_op(";")
    assert c.report.errors()[0].span.line == 1
    assert c.report.errors()[0].span.column == 2


def test_recovery_skips_to_the_next_semicolon():
    c = cursor("a b ; c")
    with c.recover():
        c.fail("x")
    assert c.at_op(";")


def test_nesting_is_bounded():
    c = cursor("a")

    def nest(depth):
        with c.nest():
            if depth:
                nest(depth - 1)

    nest(NESTING_MAX - 1)
    with pytest.raises(Refused):
        nest(NESTING_MAX)
    assert c.depth == 0
