import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgewise.edge.topics.tree import Policy, TopicTree, compose
from edgewise.errors import ProtocolError
from edgewise.wire.frames import TopicKind
from edgewise.wire.paths import parse_path, parse_selector, selects

SEGMENT = st.sampled_from(["a", "b", "c", "$sys"])
PATHS = st.lists(SEGMENT, min_size=1, max_size=4).map("/".join)
SELECTORS = st.builds(
    lambda head, tail: "/".join([*head, *tail]),
    st.lists(st.sampled_from(["a", "b", "+", "$sys"]), min_size=1, max_size=3),
    st.sampled_from([[], ["#"]]),
)


@given(st.sets(PATHS), SELECTORS)
def test_the_tree_selects_what_the_rule_says(paths, selector):
    tree = TopicTree(100)
    for path in paths:
        tree.create(path, Policy())
    parsed = parse_selector(selector)
    found = {t.path for t in tree.select(parsed)}
    assert found == {p for p in paths if selects(parsed, parse_path(p))}


@given(st.sets(PATHS, min_size=1), st.data())
def test_removal_leaves_no_branches(paths, data):
    tree = TopicTree(100)
    for path in paths:
        tree.create(path, Policy())
    for path in data.draw(st.permutations(sorted(paths))):
        assert tree.remove(path).path == path
        assert tree.remove(path) is None
    assert len(tree) == 0
    assert not tree._root.children


def test_the_tree_is_bounded():
    tree = TopicTree(1)
    tree.create("a", Policy())
    with pytest.raises(ProtocolError, match="1 topics"):
        tree.create("b", Policy())


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 400)), max_size=30))
def test_a_topic_is_due_when_it_was_silent_for_its_time_and_only_then(steps):
    tree = TopicTree(10)
    policy = Policy(ttl_ms=100)
    now, record_activity, due = 1_000_000, {}, set()
    for which, wait_ms in steps:
        now += wait_ms * 1000
        for topic in tree.due(now):
            due.add(topic.path)
        assert due == {p for p, at in record_activity.items() if now - at >= 100_000}
        path = f"t{which}"
        tree.touch(tree.get(path) or tree.create(path, policy), now)
        record_activity[path] = now
        due.discard(path)
    assert len(tree._deadlines) <= 4


def test_a_table_replaces_and_removes_rows_without_touching_the_old_value():
    policy = Policy(kind=TopicKind.TABLE)
    one = compose(policy, None, {"q": 1}, 0, "x")
    two = compose(policy, one, {"q": 2}, 0, "y")
    three = compose(policy, two, None, 0, "x")
    assert (one, two, three) == ({"x": {"q": 1}}, {"x": {"q": 1}, "y": {"q": 2}}, {"y": {"q": 2}})


@given(st.integers(1, 5), st.integers(1, 20))
def test_a_series_keeps_the_last_entries_with_dense_sequences(keep, total):
    policy, value = Policy(kind=TopicKind.SERIES, keep=keep), None
    for i in range(total):
        value = compose(policy, value, {"i": i}, i, "")
    assert [e[0] for e in value] == list(range(max(0, total - keep), total))
