import numpy as np

from edgewise import eep


def test_counting_counts_events():
    clock = eep.Counting()
    assert [clock.advance(e) for e in "abc"] == [1, 2, 3]
    assert clock.now() == 3


def test_event_time_is_the_largest_seen():
    clock = eep.EventTime(lambda e: e)
    assert clock.now() is None
    assert [clock.advance(e) for e in (5, 3, 9)] == [5, 5, 9]


def test_wall_time_never_goes_back():
    readings = iter([10, 12, 11])
    clock = eep.Wall(lambda: next(readings))
    assert [clock.advance("e"), clock.now()] == [12, 12]


def test_vector_clocks_know_what_happened_before():
    clock = eep.Vector(lambda e: e)
    first, second = clock.advance("a"), clock.advance("b")
    assert eep.happened_before(first, second)
    assert not eep.happened_before(second, first)
    assert not eep.happened_before(first, first)
    assert clock.merge({"a": 5, "c": 1}) == {"a": 5, "b": 1, "c": 1}


def test_clocks_say_the_time_for_a_whole_array():
    counting = eep.Counting(5)
    assert counting.advance_many(np.zeros(3)).tolist() == [6, 7, 8]
    stamped = eep.EventTime(lambda e: e, start=4, stamps=lambda events: events)
    assert stamped.advance_many(np.array([3, 7, 5])).tolist() == [4, 7, 7]
    assert stamped.now() == 7
    assert eep.EventTime(lambda e: e).advance_many(np.array([3])) is None
    assert eep.Wall(lambda: 9).advance_many(np.zeros(2)).tolist() == [9, 9]
    assert eep.Vector(lambda e: e).advance_many(np.zeros(2)) is None
