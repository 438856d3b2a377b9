import pytest
from tests.support.parsed_trees import expression, parsed, problems

from edgewise.lang.parse.app import parse_app
from edgewise.lang.report import Report
from edgewise.lang.source import SourceText
from edgewise.lang.syntax.query import Annotation


def reported(text):
    report = Report(SourceText(text))
    parse_app(report)
    return report.errors()


def test_annotations_of_the_app_are_told_from_those_of_its_parts():
    tree = parsed("@app:name('x') @sink(type='log') define stream S (v int)")
    assert tree.annotations == (Annotation("app:name", (("", "x"),)),)
    assert tree.definitions[0].annotations == (Annotation("sink", (("type", "log"),)),)


def test_keywords_are_legal_as_names_and_names_keep_their_case():
    tree = parsed("define stream Select (From int, `group by` int); from Select insert into Into")
    assert [c.name for c in tree.definitions[0].columns] == ["From", "group by"]


def test_each_broken_part_is_told():
    text = "define stream S (v); define stream T (v int) from S; from S select;"
    assert problems(text) == [
        "expected a type: string, int, long, float, double, bool, object, found ')'",
        "a ';' is missing here",
        "expected 'insert' or 'delete' or 'update' or 'return', found ';'",
        "expected an expression, found ';'",
    ]


def test_definitions_come_first():
    text = "define stream S (v int); from S insert into T; define stream U (v int)"
    assert problems(text) == ["a definition stands after a query"]


def test_an_expression_alone():
    assert expression("a").name == "a"


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("define stream S (a int)\nfrom S select a insert into O;", 1, 24),
        ("define stream S (a int);\nfrom S insert into O\nfrom S insert into P;", 2, 21),
        ("define stream S (a int)\n@info(name='q') from S select a insert into O;", 1, 24),
    ],
)  # fmt: skip
def test_a_missing_semicolon_is_shown_where_it_is_missing(text, line, column):
    [problem] = reported(text)
    assert (problem.span.line, problem.span.column) == (line, column)
    assert "';'" in problem.message


@pytest.mark.parametrize(
    ("query", "fix"),
    [
        ("from S[a = 3] select a insert into O;", "write =="),
        ("from S[a > 3 && a < 5] select a insert into O;", "write 'and'"),
        ("from S[a > 3 || a < 5] select a insert into O;", "write 'or'"),
        ("from S where a > 3 select a insert into O;", "in brackets"),
        ("select a from S insert into O;", "in this order"),
        ("from S select a insert into O group by a;", "in this order"),
    ],
)
def test_what_other_languages_write_is_refused_with_siddhis_way(query, fix):
    [problem] = reported(f"define stream S (a int); {query}")
    assert fix in problem.hint


@pytest.mark.parametrize("text", ["", "   ", "-- nothing", "@app:name('x')"])
def test_an_empty_app_is_refused(text):
    assert [p.message for p in reported(text)][-1:] == ["the app is empty"]
