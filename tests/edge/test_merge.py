import functools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgewise.edge.merge import STOCK, Merge, Merges, check_laws, equal, window
from edgewise.errors import SetupError

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
    shown = stats.show(folded)
    assert shown["count"] == len(values)
    assert shown["sum"] == sum(values)
    assert (shown["min"], shown["max"], shown["last"]) == (min(values), max(values), values[-1])
    assert equal(shown["mean"], sum(values) / len(values))


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
        Merges().register(merge, [1, 2, 3])


def test_a_users_merge_is_known_after_registration():
    merges = Merges()
    longest = Merge("longest", lambda a, b: max(a, b, key=len), idempotent=True)
    merges.register(longest, ["a", "bb", "ccc"])
    merge = merges.of("merge(longest(text))")
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
    assert Merges().of(conflate).merge(older, newer) == both


def test_names_and_placements_that_do_not_fit_are_refused():
    merges = Merges()
    assert merges.of("replace") is merges.of("off") is None
    for bad in ("merge(nope)", "merge()", "sometimes", "merge(sum, max)"):
        with pytest.raises(SetupError):
            merges.of(bad)
    merges.place("merge(max)", "rollback")
    merges.place("merge(sum)", "precise")
    with pytest.raises(SetupError, match="idempotent"):
        merges.place("merge(sum)", "rollback")


def test_a_window_shows_what_was_asked_for():
    mean = window(["mean", "min", "count"])
    rows = [{"p": 1, "s": "x"}, {"p": 5, "s": "y"}, {"p": 3, "s": "z"}]
    folded = functools.reduce(mean.merge, map(mean.lift, rows))
    assert mean.show(folded) == {"p": {"mean": 3.0, "min": 1, "count": 3}, "s": "z"}
    with pytest.raises(SetupError, match="median"):
        window(["median"])
