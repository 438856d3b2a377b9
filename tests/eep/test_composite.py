from edgewise import eep


def test_all_at_once():
    found = eep.Stats().of([1.0, 2.0, 3.0])
    assert (found["count"], found["sum"], found["min"], found["max"]) == (3, 6.0, 1.0, 3.0)
    assert (found["mean"], found["variance"], found["stddev"]) == (2.0, 1.0, 1.0)


def test_of_those_that_cannot_take_back_the_whole_cannot():
    assert eep.Composite(a=eep.Sum(), b=eep.Count()).invertible
    assert not eep.Composite(a=eep.Sum(), b=eep.Max()).invertible
