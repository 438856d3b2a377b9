"""How the tests of this room read apps."""

from edgewise.lang.parse.app import parse_app, parse_expression
from edgewise.lang.report import Report
from edgewise.lang.source import SourceText

DEFINE = "define stream S (k string, v int, l long, f float, p double, b bool, o object);\n"
OTHERS = "define stream A (k string, v int);\ndefine stream B (k string, v int);\n"


def parsed(text):
    """The tree of an app that must be free of problems."""
    report = Report(SourceText(text))
    tree = parse_app(report)
    assert not report.failed, [p.message for p in report.errors()]
    return tree


def problems(text):
    """What the parser says about an app."""
    report = Report(SourceText(text))
    parse_app(report)
    return [p.message for p in report.errors()]


def query(text):
    return parsed(DEFINE + text).executions[0]


def expression(text):
    report = Report(SourceText(text))
    found = parse_expression(report)
    assert found is not None, [p.message for p in report.errors()]
    return found


def expression_problem(text):
    report = Report(SourceText(text))
    assert parse_expression(report) is None
    return report.errors()[0].message
