from hypothesis import given
from hypothesis import strategies as st
from tests.edge.topics.test_tree import PATHS, SELECTORS

from edgewise.edge.topics.selectors import SelectorIndex
from edgewise.wire.paths import parse_path, parse_selector, selects


@given(st.lists(SELECTORS), PATHS, st.data())
def test_the_index_is_the_mirror_of_the_tree(selectors, path, data):
    index = SelectorIndex()
    for i, selector in enumerate(selectors):
        index.add(parse_selector(selector), i)
    gone = data.draw(st.sets(st.integers(0, max(0, len(selectors) - 1)), max_size=len(selectors)))
    for i in gone & set(range(len(selectors))):
        index.discard(parse_selector(selectors[i]), i)
    expected = {
        i
        for i, s in enumerate(selectors)
        if i not in gone and selects(parse_selector(s), parse_path(path))
    }
    assert set(index.match(parse_path(path))) == expected
