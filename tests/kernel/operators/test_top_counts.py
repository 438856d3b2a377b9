from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.kernel_runs import data, play

KEYS = st.lists(st.sampled_from("xyz"), min_size=1, max_size=15)


def query(call, k):
    word = "top" if "top" in call else "bottom"
    shown = ", ".join(f"{word}{i}Element, {word}{i}Frequency" for i in range(1, k + 1))
    return f"from A#{call} select {shown} insert into O;"


def events(keys):
    return [("A", 1000 + 10 * i, key, i) for i, key in enumerate(keys)]


@given(KEYS)
def test_the_most_frequent_value_and_how_often_it_came(keys):
    found = data(query("extrema:topK(k, 1)", 1), events(keys))
    assert found[-1][1] == max(Counter(keys).values())
    assert Counter(keys)[found[-1][0]] == found[-1][1]


def test_of_equally_frequent_values_the_last_is_first():
    assert data(query("extrema:topK(k, 2)", 2), events("xy"))[-1] == ("y", 1, "x", 1)
    assert data(query("extrema:bottomK(k, 1)", 1), events("xxy"))[-1] == ("y", 1)


def test_what_a_window_lets_go_is_counted_no_more():
    text = query("extrema:topK(k, 1)", 1).replace("A#", "A#window.length(2)#")
    assert data(text, events("xxyy"))[-1] == ("y", 2)


@pytest.mark.parametrize(
    ("call", "end"), [("topKLengthBatch(k, 3, 1)", 1020), ("topKTimeBatch(k, 50, 1)", 1050)]
)
def test_a_batch_counts_anew(call, end):
    found = play(query(f"extrema:{call}", 1), [*events("xxy"), ("A", 1060, "z", 1), 1110])
    assert found[0] == (found[0][0], "+", "x", 2)
    assert (len(found) == 2) == ("Time" in call)
    assert end <= 1050
