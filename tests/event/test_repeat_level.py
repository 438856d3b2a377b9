from edgewise.event.repeat_level import RepeatLevel


def test_every_level_says_what_it_means():
    assert len({level.meaning for level in RepeatLevel}) == len(RepeatLevel)


def test_the_worst_of_several_is_the_least():
    assert (
        min(RepeatLevel.REPEATABLE, RepeatLevel.ARBITRARY, RepeatLevel.CONVERGENT)
        is RepeatLevel.ARBITRARY
    )
