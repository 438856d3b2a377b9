"""The formatter: same tree, same comments, and nothing left to do the second time."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.golden import scripts
from tests.support.conformance_cases import cases
from tests.support.parsed_trees import parsed
from tests.support.random_trees import apps

from edgewise.errors import AppError
from edgewise.lang.layout import WIDTH_MAX, format_app
from edgewise.lang.lexer import tokenize
from edgewise.lang.report import Report
from edgewise.lang.source import SourceText
from edgewise.lang.unparse import unparse_app


def comments(text):
    found = tokenize(Report(SourceText(text)))[1]
    return [c.text.split() for c in found]


@pytest.mark.parametrize("path", scripts("fmt"), ids=lambda path: path.stem)
def test_what_it_looks_like(golden, path):
    golden(path, format_app)


@settings(max_examples=100)
@given(apps)
def test_any_app_keeps_its_meaning_and_is_formatted_once(tree):
    text = format_app(unparse_app(tree))
    assert parsed(text) == tree
    assert format_app(text) == text


SCRAPS = ["define stream S (a int);", "from S", "select a, -1 as b", "insert into T;", "-- one",
          "/* two */", "/* three\n four */", "\n", "\n\n", "@info(name='x')", "[a > 1 and a < 5]",
          "partition with (a of S)", "begin", "end;", ";",
          "from S insert into T -- five", "from S insert into T"]  # fmt: skip


@settings(max_examples=300)
@given(st.lists(st.sampled_from(SCRAPS), max_size=14))
@example(["from S insert into T -- five", "-- one", ";"])
@example(["from S insert into T -- five", "-- one", "; -- two"])
def test_comments_stay_wherever_they_stand(scraps):
    text = "define stream S (a int);\n" + "\n".join(scraps)
    try:
        once = format_app(text)
    except AppError:
        return
    assert comments(once) == comments(text)
    assert parsed(once) == parsed(text)
    assert format_app(once) == once


@pytest.mark.parametrize("step", [9, pytest.param(1, marks=pytest.mark.slow)])
def test_every_app_of_the_conformance_set_is_formatted_once(step):
    for case in cases("siddhi_cases")[::step] + cases("generated")[::step]:
        text = format_app(case["app"])
        assert parsed(text) == parsed(case["app"])
        assert format_app(text) == text


def test_long_lines_are_broken():
    items = ", ".join(f"attribute{n} as name{n}" for n in range(30))
    text = format_app(f"define stream S (a int); from S select {items} insert into T;")
    assert max(len(line) for line in text.splitlines()) <= WIDTH_MAX


def test_what_cannot_be_read_is_left_alone():
    with pytest.raises(AppError):
        format_app("define stream S (a int")
