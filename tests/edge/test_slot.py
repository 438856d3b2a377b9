import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgewise.edge.merge import window
from edgewise.edge.slot import ANY, Slot, Want
from edgewise.edge.topics import Policy, TopicTree
from edgewise.wire.frames import TopicKind

WANTS = st.builds(
    Want,
    gap_us=st.sampled_from([0, 10, 1000]),
    weight=st.sampled_from([0.5, 1.0, 7.0]),
    window=st.none() | st.just(window(["mean"])),
    last=st.integers(0, 3),
)


@given(st.lists(WANTS, min_size=1, max_size=5))
def test_overlapping_subscriptions_get_what_the_most_demanding_of_them_wants(wants):
    slot = Slot(TopicTree(1).create("a", Policy()))
    for number, want in enumerate(wants):
        slot.want(number, want)
    assert slot.gap_us == min(w.gap_us for w in wants)
    assert slot.weight == max(w.weight for w in wants)
    assert slot.last == (0 if any(w.last == 0 for w in wants) else max(w.last for w in wants))
    assert (slot.merge is not None) == all(w.window for w in wants)


@given(st.lists(WANTS, max_size=3), WANTS)
def test_a_subscription_that_ends_leaves_no_trace(wants, passing):
    slot, same = (Slot(TopicTree(1).create("a", Policy())) for _ in range(2))
    for number, want in enumerate(wants):
        slot.want(number, want)
        same.want(number, want)
    slot.want(99, passing)
    slot.want(99, None)
    names = ("gap_us", "weight", "last", "merge")
    assert [getattr(slot, n) for n in names] == [getattr(same, n) for n in names]


def test_nothing_special_is_wanted_by_default():
    slot = Slot(TopicTree(1).create("a", Policy()))
    slot.want(1, ANY)
    assert (slot.gap_us, slot.weight, slot.last, slot.merge) == (0, 1.0, 0, None)


def test_the_weight_of_the_sink_and_of_the_subscription_multiply():
    slot = Slot(TopicTree(1).create("a", Policy(weight=3.0)))
    assert slot.weight == 3.0
    slot.want(1, Want(weight=2.0))
    assert slot.weight == 6.0


@pytest.mark.parametrize("kind", [TopicKind.TABLE, TopicKind.SERIES, TopicKind.BLOB])
def test_a_window_leaves_what_has_no_fields_as_it_is(kind):
    slot = Slot(TopicTree(1).create("a", Policy(kind)))
    slot.want(1, Want(window=window(["mean"])))
    assert slot.merge is None
