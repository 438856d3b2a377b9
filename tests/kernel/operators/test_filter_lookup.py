"""An index answers as a look at every range and every value would."""

import math

from hypothesis import given
from hypothesis import strategies as st

from edgewise.kernel.operators import filter_lookup as index

NUMBERS = st.integers(-4, 4) | st.sampled_from([-2.5, 0.5, 3.5])
ENDS = st.tuples(st.none() | NUMBERS, st.booleans())


def holds(value, low, above, high, below):
    if value is None or math.isnan(value):
        return False
    over = low is None or (value > low if above else value >= low)
    return over and (high is None or (value < high if below else value <= high))


@given(
    st.lists(st.tuples(ENDS, ENDS), min_size=1, max_size=8),
    st.none() | NUMBERS | st.just(math.nan),
)
def test_a_range_covers_what_lies_in_it(ranges, value):
    spans = tuple((*low, *high, n) for n, (low, high) in enumerate(ranges))
    part = index.ByRange(0, spans)
    found = part.queries(part.key(value))
    assert found == tuple(span[4] for span in spans if holds(value, *span[:4]))


def test_what_is_remembered_is_bounded(monkeypatch):
    monkeypatch.setattr(index, "REMEMBERED_MAX", 20)
    spans = tuple((n, False, None, False, n) for n in range(10))
    entries = tuple(f"q{n}" for n in range(11))
    found = index.Index(entries, (index.ByRange(0, spans),), [10])
    for _ in range(3):
        for value in range(-1, 10):
            assert found.find((value,)) == (*entries[: value + 1], "q10")
    assert sum(len(entry) + 1 for entry in found._found.values()) <= 20


def test_several_attributes_give_one_order():
    parts = (index.ByValue(0, (("a", (0, 3)),)), index.ByRange(1, ((5, True, None, False, 2),)))
    found = index.Index(("q0", "q1", "q2", "q3"), parts, [1])
    assert found.find(("a", 6)) == ("q0", "q1", "q2", "q3")
    assert found.find(("b", 6)) == ("q1", "q2")
    assert found.find((None, None)) == ("q1",)
