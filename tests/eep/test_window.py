import numpy as np
import pytest

from edgewise import eep
from edgewise.eep import laws
from edgewise.eep.window import to_list


def all_of(window, values):
    return [r for value in values for r in window.push(value)]


def test_tumbling_starts_anew():
    assert all_of(eep.tumbling(eep.Sum(), 2), [1, 2, 3, 4, 5]) == [3, 7]


def test_sliding_emits_once_full():
    assert all_of(eep.sliding(eep.Max(), 3), [5, 1, 2, 3, 0]) == [5, 3, 3]


def test_periodic_closes_by_its_clock_and_skips_empty_times():
    window = eep.periodic(eep.Count(), 10, eep.EventTime(lambda t: t))
    assert all_of(window, [0, 5, 10, 45, 46]) == [2, 1]
    assert window.tick(60) == (2,)
    assert window.tick(90) == ()


def test_monotonic_closes_when_the_moment_changes():
    window = eep.monotonic(eep.Sum(), eep.EventTime(lambda e: e // 10))
    assert all_of(window, [1, 2, 11, 12, 31]) == [3, 23]


def test_piping_composes():
    window = eep.tumbling(eep.Sum(), 2).pipe(eep.tumbling(eep.Max(), 2))
    assert all_of(window, range(8)) == [5, 13]
    assert eep.tumbling(eep.Sum(), 2).pipe(eep.tumbling(eep.Max(), 2)).push_many(range(8)) == [
        5,
        13,
    ]


def test_push_many_takes_arrays():
    values = np.arange(10.0)
    assert eep.tumbling(eep.Mean(), 5).push_many(values).tolist() == [2.0, 7.0]
    assert eep.sliding(eep.Min(), 9).push_many(values).tolist() == [0.0, 1.0]


def test_a_whole_window_goes_to_a_function_as_an_array():
    def doubled(prices):
        return prices * 2

    (result,) = eep.tumbling(eep.Whole(doubled), 4).push_many(np.arange(4.0))
    assert result.tolist() == [0.0, 2.0, 4.0, 6.0]


def test_a_window_without_size_is_refused():
    with pytest.raises(ValueError, match="size of 1 or more, not 0"):
        eep.tumbling(eep.Sum(), 0)


def test_a_composite_of_an_array_gives_records():
    records = eep.sliding(eep.Stats(), 2).push_many(np.arange(3.0))
    assert records["sum"].tolist() == [1.0, 3.0]
    assert eep.sliding(eep.Stats(), 2).push_many([0.0, 1.0, 2.0])[1]["sum"] == 3.0


@pytest.mark.parametrize("name", ["Variance", "StdDev", "Stats"])
def test_a_moment_of_one_event_has_no_spread(name):
    def make():
        return eep.monotonic(getattr(eep, name)(), eep.EventTime(lambda e: e // 10, stamps=tens))

    def tens(events):
        return events // 10

    values = [1.0, 2.0, 4.0, 11.0, 21.0, 22.0, 29.0, 31.0]
    found = make().push_many(np.array(values))
    wanted = all_of(make(), values)
    assert laws.close(to_list(found), wanted)


def test_a_wall_clock_takes_an_array_as_one_moment():
    readings = iter([0, 0, 0, 5, 12])
    window = eep.periodic(eep.Sum(), 10, eep.Wall(lambda: next(readings)))
    assert list(window.push_many(np.arange(3.0))) == []
    assert list(window.push_many(np.arange(3.0))) == []
    assert window.push(1.0) == ()
    assert list(window.push_many(np.array([5.0]))) == [7.0]
