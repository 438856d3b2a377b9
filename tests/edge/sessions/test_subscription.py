import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgewise.edge.sessions.subscription import (
    NO_PREFERENCE,
    TRANSITIONS,
    DeliveryState,
    Preference,
    TopicSubscription,
    Trigger,
)
from edgewise.edge.topics.merges import window_merge
from edgewise.edge.topics.tree import Policy, TopicTree
from edgewise.wire.frames import TopicKind

WANTS = st.builds(
    Preference,
    gap_us=st.sampled_from([0, 10, 1000]),
    weight=st.sampled_from([0.5, 1.0, 7.0]),
    window=st.none() | st.just(window_merge(["mean"])),
    last=st.integers(0, 3),
)


@given(st.lists(WANTS, min_size=1, max_size=5))
def test_overlapping_subscriptions_get_what_the_most_demanding_of_them_wants(wants):
    subscription = TopicSubscription(TopicTree(1).create("a", Policy()))
    for number, want in enumerate(wants):
        subscription.prefer(number, want)
    assert subscription.preference.gap_us == min(w.gap_us for w in wants)
    assert subscription.weight == max(w.weight for w in wants)
    assert subscription.preference.last == (
        0 if any(w.last == 0 for w in wants) else max(w.last for w in wants)
    )
    assert (subscription.merge is not None) == all(w.window for w in wants)


@given(st.lists(WANTS, max_size=3), WANTS)
def test_a_subscription_that_ends_leaves_no_trace(wants, passing):
    subscription, same = (TopicSubscription(TopicTree(1).create("a", Policy())) for _ in range(2))
    for number, want in enumerate(wants):
        subscription.prefer(number, want)
        same.prefer(number, want)
    subscription.prefer(99, passing)
    subscription.prefer(99, None)
    names = ("preference", "weight", "merge")
    assert [getattr(subscription, n) for n in names] == [getattr(same, n) for n in names]


def test_nothing_special_is_wanted_by_default():
    subscription = TopicSubscription(TopicTree(1).create("a", Policy()))
    subscription.prefer(1, NO_PREFERENCE)
    assert (subscription.preference, subscription.weight, subscription.merge) == (
        NO_PREFERENCE,
        1.0,
        None,
    )


def test_the_weight_of_the_sink_and_of_the_subscription_multiply():
    subscription = TopicSubscription(TopicTree(1).create("a", Policy(weight=3.0)))
    assert subscription.weight == 3.0
    subscription.prefer(1, Preference(weight=2.0))
    assert subscription.weight == 6.0


@pytest.mark.parametrize("kind", [TopicKind.TABLE, TopicKind.SERIES, TopicKind.BLOB])
def test_a_window_leaves_what_has_no_fields_as_it_is(kind):
    subscription = TopicSubscription(TopicTree(1).create("a", Policy(kind)))
    subscription.prefer(1, Preference(window=window_merge(["mean"])))
    assert subscription.merge is None


def test_every_state_can_be_reached_and_left():
    reached = {DeliveryState.IDLE}
    while more := {to for state in reached for to in TRANSITIONS[state].values()} - reached:
        reached |= more
    assert reached == set(DeliveryState) == set(TRANSITIONS)
    for row in TRANSITIONS.values():
        assert row[Trigger.RESET] is DeliveryState.IDLE


def test_every_trigger_moves_some_subscription():
    assert {trigger for row in TRANSITIONS.values() for trigger in row} == set(Trigger)
