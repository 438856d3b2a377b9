from hypothesis import given
from hypothesis import strategies as st

from edgewise.errors import Span
from edgewise.lang.source import SourceText, substitute


@given(st.text(alphabet="ab\n\r\t\x0b\u2028", max_size=40), st.data())
def test_the_line_of_an_offset_is_the_line_an_error_will_print(text, data):
    offset = data.draw(st.integers(0, len(text)))
    span = SourceText(text).span((offset, offset + 1))
    lines = text.splitlines() or [""]
    if span.line <= len(lines) and span.column <= len(lines[span.line - 1]):
        assert lines[span.line - 1][span.column - 1] == text[offset]


def test_what_runs_over_lines_is_marked_on_its_first():
    assert SourceText("ab\ncd").span((1, 5)) == Span(1, 2, 1)


def test_variables_are_replaced_and_missing_ones_named_with_their_place():
    assert substitute("a ${X} b", {"X": "1"}) == ("a 1 b", [])
    assert substitute("a ${Y}", {}) == ("a ${Y}", [("Y", (2, 6))])
