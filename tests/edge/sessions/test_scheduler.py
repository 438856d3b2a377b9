from hypothesis import given
from hypothesis import strategies as st
from tests.edge.sessions.test_outbox import Bench, primed

from edgewise.edge.sessions.scheduler import CANDIDATES_MAX, RateTimer
from edgewise.edge.sessions.subscription import Preference, TopicSubscription
from edgewise.edge.topics.tree import Policy, TopicTree

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("start"), st.integers(0, 3), st.integers(0, 20)),
        st.tuples(st.just("stop"), st.integers(0, 3), st.just(0)),
        st.tuples(st.just("pop"), st.just(0), st.integers(0, 25)),
    ),
    max_size=60,
)


@given(STEPS)
def test_a_timer_releases_each_topic_once_when_it_is_due_and_keeps_little(steps):
    timer, expected = RateTimer(), {}
    tree = TopicTree(10)
    known = [TopicSubscription(tree.create(name, Policy())) for name in "abcd"]
    for verb, alias, at_us in steps:
        if verb == "start":
            known[alias].due_us = at_us
            timer.start(known[alias])
            expected[alias] = max(1, at_us)
        elif verb == "stop":
            timer.stop(known[alias].topic.alias)
            expected.pop(alias, None)
        else:
            due = {alias for alias, due_us in expected.items() if due_us <= at_us}
            released = [known.index(subscription) for subscription in timer.pop_due(at_us)]
            assert set(released) == due
            assert len(released) == len(due)
            for alias_due in due:
                del expected[alias_due]
        waiting = {known.index(s): s.due_us for s in timer.waiting.values()}
        assert waiting == expected
        assert len(timer.heap) <= 2 * len(expected) + 1
        assert bool(timer.next_us) or not expected


def test_changes_of_several_topics_go_out_by_capture_time_when_all_fit():
    bench = primed("AB", conflate="off")
    for name in "AABAB":
        bench.publish(name, {"v": bench.offset})
    aliases = bench.outbox.scheduler.order(10**9, 0)
    paths = {topic.alias: topic.path for topic in bench.tree}
    assert [paths[alias] for alias in aliases] == [*"AABAB"]


def test_a_topic_is_chosen_once_when_not_all_fits():
    bench = primed("AB", conflate="off")
    for name in "AABAB":
        bench.publish(name, {"v": bench.offset})
    assert sorted(bench.outbox.scheduler.order(1, 10)) == sorted(t.alias for t in bench.tree)


def test_a_bounded_number_of_topics_is_considered():
    bench = Bench()
    bench.tree._topics_max = bench.outbox.topics_max = 3 * CANDIDATES_MAX
    for number in range(2 * CANDIDATES_MAX):
        bench.publish(f"t/{number}", {"v": 1})
    assert len(bench.outbox.scheduler.order(10**9, 0)) == CANDIDATES_MAX


def test_what_was_overtaken_is_counted_while_it_waits_and_after():
    bench = primed("AB")
    bench.tree.get("B").subscriptions[bench.outbox].prefer(1, Preference(gap_us=1000))
    bench.publish("A", {"v": 1})
    assert (bench.outbox.conflated, bench.outbox.scheduler.behind) == (0, False)
    bench.publish("A", {"v": 2})
    bench.publish("A", {"v": 3})
    assert (bench.outbox.conflated, bench.outbox.scheduler.behind) == (2, True)
    bench.flush()
    assert (bench.outbox.conflated, bench.outbox.scheduler.behind) == (2, False)
    for value in range(4):
        bench.publish("B", {"v": value})
        bench.flush()
    assert bench.outbox.conflated == 4
    assert [*bench.outbox.scheduler.count_by_topic()] == []
