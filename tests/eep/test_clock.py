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
