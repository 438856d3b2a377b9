import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.kernel_runs import play

ALL = "from A#window.extrema:{} select k, v insert all events into O;"


def events(values):
    return [("A", 1000 + 10 * i, "x", v) for i, v in enumerate(values)]


@pytest.mark.parametrize(("word", "best"), [("max", max), ("min", min)])
@given(values=st.lists(st.integers(-5, 5), unique=True, max_size=15), n=st.integers(1, 4))
def test_the_best_of_the_last_n_is_shown_with_each_event(word, best, values, n):
    found = play(ALL.format(f"{word}ByLength(v, {n})"), events(values))
    wanted = [best(values[max(0, i - n + 1) : i + 1]) for i in range(len(values))]
    assert [row[3] for row in found if row[1] == "+"] == wanted


@pytest.mark.parametrize(("word", "best"), [("max", max), ("min", min)])
@given(values=st.lists(st.integers(-5, 5), max_size=15), n=st.integers(1, 4))
def test_a_batch_shows_its_best(word, best, values, n):
    found = play(ALL.format(f"{word}ByLengthBatch(v, {n})"), events(values))
    wanted = [best(values[i : i + n]) for i in range(0, len(values) - n + 1, n)]
    assert [row[3] for row in found if row[1] == "+"] == wanted


def test_the_best_of_a_time_is_shown_when_it_changes_and_leaves_with_its_time():
    found = play(ALL.format("maxbytime(v, 30)"), [*events([1, 3, 2, 5]), 1200])
    assert [row[:2] + row[3:] for row in found] == [
        (1000, "+", 1), (1010, "+", 3), (1030, "-", 1), (1030, "+", 5), (1040, "-", 3),
        (1060, "-", 5),
    ]  # fmt: skip


def test_each_time_shows_its_best():
    found = play(ALL.format("minbytimebatch(v, 100)"), [*events([3, 1, 2]), 1300])
    assert [row[:2] + row[3:] for row in found] == [(1010, "+", 1), (1200, "-", 1)]


def test_an_event_without_the_value_is_dropped():
    assert not play(ALL.format("maxByLength(v, 3)"), [("A", 1000, "x", None)])
