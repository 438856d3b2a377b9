import pytest

from edgewise.errors import AppError
from edgewise.lang.report import PROBLEMS_MAX, Refused, Report, list_some, suggest_nearest
from edgewise.lang.source import SourceText


def test_problems_are_told_in_the_order_of_the_text_and_once():
    report = Report(SourceText("one two"))
    report.error((4, 7), "second")
    report.error((0, 3), "first")
    report.error((0, 3), "first")
    assert [p.message for p in report.errors()] == ["first", "second"]


def test_a_failure_ends_its_block_and_no_more():
    report = Report(SourceText("x"))
    with report.attempt():
        report.fail((0, 1), "no")
    with pytest.raises(Refused):
        report.fail((0, 1), "no")
    with pytest.raises(AppError, match="no"):
        report.raise_errors()


def test_warnings_stop_nobody():
    report = Report(SourceText("x"))
    report.warn((0, 1), "careful")
    report.raise_errors()
    assert [p.severity for p in report.warnings()] == ["warning"]


def test_a_broken_file_does_not_flood_the_terminal():
    report = Report(SourceText("x" * 1000))
    for place in range(1000):
        report.error((place, place + 1), "bad")
    assert report.full
    assert len(report.errors()) == PROBLEMS_MAX


def test_a_hint_names_what_is_close_and_nothing_else():
    assert suggest_nearest("sybol", ["price", "symbol"]) == "did you mean 'symbol'?"
    assert not suggest_nearest("zzz", ["price", "symbol"])
    assert list_some("abc", limit=2) == "a, b, ..."
