from edgewise.event.repeat import Repeat


def test_every_level_says_what_it_means():
    assert len({level.meaning for level in Repeat}) == len(Repeat)


def test_the_worst_of_several_is_the_least():
    assert min(Repeat.REPEATABLE, Repeat.ARBITRARY, Repeat.CONVERGENT) is Repeat.ARBITRARY
