import pytest

from edgewise.event.repeat_level import RepeatLevel
from edgewise.gateway.spec import Guarantee
from edgewise.ha.recovery import Recovery
from edgewise.ha.recovery_matrix import (
    DELIVERIES,
    LEAST,
    MOST,
    ONCE,
    SinkEnd,
    choose_default,
    explain_refusal,
    find_source_limits,
    list_kept,
)


def test_every_delivery_of_sources_and_sinks_is_in_the_table():
    assert set(DELIVERIES) == {guarantee.value for guarantee in Guarantee}


@pytest.mark.parametrize("delivery", DELIVERIES)
@pytest.mark.parametrize("repeat", RepeatLevel)
def test_what_is_refused_is_what_is_not_kept(repeat, delivery):
    kept = list_kept(repeat, delivery)
    assert kept, "something can always be promised"
    assert choose_default(repeat, delivery) is kept[0]
    for kind in Recovery:
        refusal = explain_refusal(kind, repeat, SinkEnd("http", delivery, tuple(DELIVERIES)))
        assert bool(refusal) == (kind not in kept)


@pytest.mark.parametrize("delivery", DELIVERIES)
def test_a_better_query_keeps_all_that_a_worse_one_does(delivery):
    for worse in RepeatLevel:
        for better in (level for level in RepeatLevel if level > worse):
            assert set(list_kept(worse, delivery)) <= set(list_kept(better, delivery))


def test_a_refusal_names_the_delivery_that_would_do():
    sink = SinkEnd("http", LEAST, (LEAST, MOST, ONCE))
    assert "declare delivery='effectively-once'" in explain_refusal(
        Recovery.PRECISE, RepeatLevel.REPEATABLE, sink
    )
    assert "declare delivery='at-most-once'" in explain_refusal(
        Recovery.GAP, RepeatLevel.REPEATABLE, sink
    )


def test_a_source_limits_only_what_promises_each_row_once():
    sources = [("http", LEAST), ("http", LEAST), ("kafka", ONCE)]
    assert len(find_source_limits(Recovery.PRECISE, sources)) == 1
    assert find_source_limits(Recovery.REPEATING, sources) == ()
