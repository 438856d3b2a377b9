import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgewise.errors import ProtocolError
from edgewise.wire.codes import ProtocolCode
from edgewise.wire.paths import PATH_BYTES_MAX, parse_path, parse_selector, selects

SEGMENT = st.text(
    st.characters(codec="utf-8", exclude_characters="/+#", min_codepoint=32),
    min_size=1,
    max_size=6,
)
PATHS = st.lists(SEGMENT, min_size=1, max_size=6).map(tuple)


@given(PATHS)
def test_a_path_selects_itself_and_its_text_parses_back(path):
    assert parse_path("/".join(path)) == path
    assert selects(parse_selector("/".join(path)), path)


@given(PATHS, st.data())
def test_wildcards_only_widen(path, data):
    mask = data.draw(st.lists(st.booleans(), min_size=len(path), max_size=len(path)))
    selector = tuple("+" if m else s for m, s in zip(mask, path, strict=True))
    hidden = path[0].startswith("$") and selector[0] == "+"
    assert selects(selector, path) is not hidden
    cut = data.draw(st.integers(0, len(path)))
    hidden = path[0].startswith("$") and cut == 0
    assert selects((*path[:cut], "#"), path) is not hidden


@pytest.mark.parametrize(
    ("selector", "path", "expected"),
    [
        ("alerts/+", "alerts/a", True),
        ("alerts/+", "alerts", False),
        ("alerts/+", "alerts/a/b", False),
        ("alerts/#", "alerts", True),
        ("alerts/#", "alerts/a/b", True),
        ("#", "$sys/rates", False),
        ("+/rates", "$sys/rates", False),
        ("$sys/#", "$sys/rates", True),
    ],
)
def test_selection_by_example(selector, path, expected):
    assert selects(parse_selector(selector), parse_path(path)) is expected


@pytest.mark.parametrize(
    "text", ["", "/a", "a//b", "a/", "a/#", "+", "a\x00b", "x" * 1025, "a/" * 40 + "b"]
)
def test_bad_paths_are_refused_with_a_reason(text):
    with pytest.raises(ProtocolError) as caught:
        parse_path(text)
    assert caught.value.code == ProtocolCode.BAD_PATH
    assert len(caught.value.reason) < 2 * PATH_BYTES_MAX


@pytest.mark.parametrize("text", ["", "#/a", "a/#/b"])
def test_bad_selectors_are_refused(text):
    with pytest.raises(ProtocolError) as caught:
        parse_selector(text)
    assert caught.value.code == ProtocolCode.BAD_SELECTOR
