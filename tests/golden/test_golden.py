import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.golden import Case, check, parse, render

WORDS = st.text("ab #-", min_size=1).filter(
    lambda s: s.strip() and not s.startswith("#") and s != "----"
)
OUTPUTS = st.lists(WORDS | st.just(""), max_size=4).map("\n".join)
CASES = st.lists(
    st.builds(
        Case,
        comment=st.just("") | st.just("# why"),
        command=st.lists(WORDS, min_size=1, max_size=3).map("\n".join),
        output=OUTPUTS,
    ),
    max_size=4,
)


@given(CASES)
def test_what_is_written_down_reads_back(cases):
    assert [(c.command, c.output) for c in parse(render(cases))] == [
        (c.command, c.output) for c in cases
    ]
    assert render(parse(render(cases))) == render(cases)


def test_a_script_that_prints_something_else_fails(tmp_path):
    path = tmp_path / "x.txt"
    path.write_text("# upper case\nhello\n----\nhello\n")
    with pytest.raises(AssertionError, match="look, then run pytest --rewrite-golden"):
        check(path, str.upper, rewrite=False)


def test_rewriting_changes_outputs_only(tmp_path):
    path = tmp_path / "x.txt"
    path.write_text("# upper case\n\nhello\n----\nhello\n\n# two lines\na\nb\n----\n")
    check(path, str.upper, rewrite=True)
    assert path.read_text() == (
        "# upper case\n\nhello\n----\nHELLO\n\n# two lines\na\nb\n----\nA\nB\n"
    )
    check(path, str.upper, rewrite=False)


def test_a_command_without_a_rule_is_a_mistake_in_the_script():
    with pytest.raises(AssertionError, match="a command without '----' after it: hello"):
        parse("hello\n")
