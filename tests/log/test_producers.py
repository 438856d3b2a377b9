from hypothesis import given
from hypothesis import strategies as st

from edgewise.log.api import Appended
from edgewise.log.producers import RECENT_MAX, Producers

appends = st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 5)), max_size=40)


@given(appends)
def test_a_sequence_is_new_once_also_after_a_restore(steps):
    producers = Producers(10)
    highest, offset = {}, 0
    for name, sequence in steps:
        new = sequence > highest.get(name, -1)
        assert (producers.find(name, sequence, offset) is None) == new
        if new:
            producers.record(name, sequence, offset, offset + 2)
            highest[name] = sequence
            offset += 2
        producers = Producers.restore(producers.snapshot(), 10)
    assert {n: producers.last(n) for n in highest} == highest


def test_recent_offsets_are_remembered_and_older_ones_answer_the_head():
    producers = Producers(10)
    for sequence in range(20):
        producers.record("p", sequence, sequence * 10, sequence * 10 + 10)
    oldest = 20 - RECENT_MAX
    assert producers.find("p", oldest, 200) == Appended(oldest * 10, oldest * 10 + 10, True)
    assert producers.find("p", oldest - 1, 200) == Appended(200, 200, True)


def test_the_frames_of_one_append_count_as_one():
    producers = Producers(10)
    producers.record("p", 1, 0, 10)
    producers.record("p", 1, 10, 15)
    assert producers.find("p", 1, 15) == Appended(0, 15, True)


def test_the_producer_that_was_quiet_longest_is_forgotten():
    producers = Producers(2)
    for name in ("a", "b", "a", "c"):
        producers.record(name, producers.last(name) + 1, 0, 1)
    assert [s.name for s in producers.snapshot()] == ["a", "c"]


def test_no_name_or_no_sequence_is_never_a_duplicate():
    producers = Producers(2)
    producers.record("", 1, 0, 1)
    producers.record("p", -1, 0, 1)
    assert producers.find("", 1, 1) is None
    assert producers.find("p", -1, 1) is None
    assert producers.snapshot() == []
