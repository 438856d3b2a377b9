import functools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgewise.edge.topics.merges import (
    STOCK,
    WINDOW_SHOWS,
    Merge,
    MergeRegistry,
    check_laws,
    equal,
    window_merge,
)
from edgewise.errors import SetupError
from edgewise.wire import codec

INTS = st.integers(-1000, 1000)
LISTS = st.lists(INTS, max_size=4)
ON = {
    "sum": INTS,
    "min": INTS,
    "max": INTS,
    "last": INTS,
    "first": INTS,
    "union": LISTS.map(lambda x: sorted(set(x))),
    "set": st.dictionaries(st.sampled_from("abc"), INTS),
    "append": LISTS,
    "stats": INTS,
}


@pytest.mark.parametrize("name", STOCK)
@given(data=st.data())
def test_stock_merges_keep_their_laws(name, data):
    check_laws(STOCK[name], tuple(data.draw(st.lists(ON[name], min_size=2, max_size=4))))


@given(st.lists(INTS, min_size=1, max_size=30), st.data())
def test_any_grouping_of_stats_is_the_whole(values, data):
    stats = STOCK["stats"]
    lifted = [stats.lift(v) for v in values]
    cut = data.draw(st.integers(0, len(values)))
    parts = [p for p in (lifted[:cut], lifted[cut:]) if p]
    folded = functools.reduce(stats.merge, (functools.reduce(stats.merge, p) for p in parts))
    show = stats.show(folded)
    assert show["count"] == len(values)
    assert show["sum"] == sum(values)
    assert (show["min"], show["max"], show["last"]) == (min(values), max(values), values[-1])
    assert equal(show["mean"], sum(values) / len(values))


@pytest.mark.parametrize(
    ("merge", "law"),
    [
        (Merge("bad", lambda a, b: a - b), "associative"),
        (Merge("bad", lambda _a, b: b, commutative=True), "commutative"),
        (Merge("bad", lambda a, b: a + b, idempotent=True), "idempotent"),
        (Merge("bad", lambda a, b: a + b, inverse=lambda ab, _a: ab), "invertible"),
    ],
)
def test_a_merge_that_breaks_its_word_is_refused_with_the_values(merge, law):
    with pytest.raises(SetupError, match=rf"not {law}: .*\d"):
        MergeRegistry().register(merge, [1, 2, 3])


def test_a_users_merge_is_known_after_registration():
    merges = MergeRegistry()
    longest = Merge("longest", lambda a, b: max(a, b, key=len), idempotent=True)
    merges.register(longest, ["a", "bb", "ccc"])
    merge = merges.parse("merge(longest(text))")
    assert merge.merge({"text": "abc"}, {"text": "z", "n": 1}) == {"text": "abc", "n": 1}
    with pytest.raises(SetupError, match="stock"):
        merges.register(Merge("sum", min), [1, 2])
    with pytest.raises(SetupError, match="two samples"):
        merges.register(Merge("other", min), [1])


@pytest.mark.parametrize(
    ("conflate", "older", "newer", "both"),
    [
        ("merge(sum)", {"ip": "a", "n": 1, "x": 1.5}, {"ip": "b", "n": 2, "x": 1},
         {"ip": "b", "n": 3, "x": 2.5}),
        ("merge(sum(n), max(peak))", {"n": 1, "peak": 9, "c": 1}, {"n": 2, "peak": 3, "c": 2},
         {"n": 3, "peak": 9, "c": 2}),
        ("merge(append(2))", {"log": [1, 2]}, {"log": [3]}, {"log": [2, 3]}),
        ("merge(union)", {"tags": ["b"]}, {"tags": ["a", "b"]}, {"tags": ["a", "b"]}),
        ("merge(sum)", {"n": None}, {"n": 2}, {"n": 2}),
    ],
)  # fmt: skip
def test_records_merge_by_field(conflate, older, newer, both):
    assert MergeRegistry().parse(conflate).merge(older, newer) == both


def test_names_and_placements_that_do_not_fit_are_refused():
    merges = MergeRegistry()
    assert merges.parse("replace") is merges.parse("off") is None
    for bad in ("merge(nope)", "merge()", "sometimes", "merge(sum, max)"):
        with pytest.raises(SetupError):
            merges.parse(bad)
    merges.validate_recovery("merge(max)", "rollback")
    merges.validate_recovery("merge(sum)", "precise")
    with pytest.raises(SetupError, match="idempotent"):
        merges.validate_recovery("merge(sum)", "rollback")


def test_a_window_shows_what_was_asked_for():
    mean = window_merge(["mean", "min", "count"])
    rows = [{"p": 1, "s": "x"}, {"p": 5, "s": "y"}, {"p": 3, "s": "z"}]
    folded = functools.reduce(mean.merge, map(mean.lift, rows))
    assert mean.show(folded) == {"p": {"mean": 3.0, "min": 1, "count": 3}, "s": "z"}
    with pytest.raises(SetupError, match="median"):
        window_merge(["median"])


ANYTHING = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**63), 2**64 - 1),
        st.floats(),
        st.text(max_size=3),
        st.binary(max_size=3),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(["a", "m2", "count", "mean"]), inner, max_size=3),
    ),
    max_leaves=4,
)
RECORDS = st.lists(st.dictionaries(st.sampled_from("ab"), ANYTHING), min_size=1, max_size=6)


@pytest.mark.parametrize("name", [*(f"merge({n})" for n in STOCK), "merge(sum(a), min(b))"])
@given(records=RECORDS)
def test_whatever_is_published_merges_to_something_a_frame_can_carry(name, records):
    merge = MergeRegistry().parse(name)
    codec.encode(merge.show(functools.reduce(merge.merge, map(merge.lift, records))))


@given(RECORDS)
def test_whatever_is_published_has_a_window(records):
    own = window_merge(WINDOW_SHOWS)
    codec.encode(own.show(functools.reduce(own.merge, map(own.lift, records))))


def test_a_map_that_looks_like_statistics_is_a_map():
    own, record = window_merge(["mean"]), {"a": {"m2": 1}}
    assert own.show(own.merge(own.lift(record), own.lift(record))) == record


def test_lists_and_maps_have_a_union_too():
    union = STOCK["union"].merge
    assert union([[1], "[1]", 2], [{"b": 1}, [1], 2]) == [{"b": 1}, 2, [1], "[1]"]
