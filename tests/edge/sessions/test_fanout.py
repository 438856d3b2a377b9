import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgewise.edge.sessions.fanout import SWEPT_MAX, Fanout
from edgewise.edge.sessions.outbox import Outbox
from edgewise.edge.sessions.subscription import DeliveryState, Preference
from edgewise.edge.topics.merges import Merge
from edgewise.edge.topics.tree import Policy, Publication, TopicTree
from edgewise.errors import ProtocolError
from edgewise.wire import codec, frames
from edgewise.wire.paths import parse_selector
from edgewise.wire.view import Removed, Update, View

SECOND = 1_000_000


class Viewer:
    def __init__(self, fanout, *selectors):
        self.fanout = fanout
        self.outbox = Outbox(3, 100_000, 1000)
        self.view = View()
        self.held = {}  # the newest offset by path
        for i, selector in enumerate(selectors):
            fanout.subscribe(self.outbox, i, parse_selector(selector))

    def read(self, bytes_max=10**9, now=0):
        out = [codec.decode_from_server(f) for f in self.outbox.take(bytes_max, now)]
        events = [e for f in out if (e := self.view.take(f)) is not None]
        for event in events:
            if isinstance(event, Removed):
                self.held.pop(event.path, None)
            elif isinstance(event, Update):
                meta, before = event.meta, self.held.get(event.path)
                # Whatever is not a first sight goes on where the client was.
                assert meta.how is frames.How.SNAPSHOT or meta.start == before
                assert before is None or meta.to > before
                self.held[event.path] = meta.to
        return events


def an_edge():
    return Fanout(TopicTree(100))


def put(fanout, path, value, now=SECOND, policy=None):
    fanout.publish(Publication(path, value, fanout.published, now, policy=policy), now)


def test_topics_before_and_after_the_subscription_arrive_once_each():
    fanout = an_edge()
    put(fanout, "a/1", {"v": 1})
    viewer = Viewer(fanout, "a/+", "a/#", "a/1")
    put(fanout, "a/2", {"v": 2})
    put(fanout, "b", {"v": 3})
    assert [(u.path, u.value) for u in viewer.read()] == [("a/1", {"v": 1}), ("a/2", {"v": 2})]


def test_publishing_marks_only_those_who_look():
    fanout = an_edge()
    looks, looks_away = Viewer(fanout, "a/#"), Viewer(fanout, "b/#")
    fanout.dirty.clear()
    put(fanout, "a/1", {})
    assert list(fanout.dirty) == [looks.outbox]
    assert looks_away.read() == []


def test_a_topic_stays_as_long_as_one_subscription_selects_it():
    fanout = an_edge()
    put(fanout, "a/1", {})
    viewer = Viewer(fanout, "a/+", "a/#")
    viewer.read()
    fanout.unsubscribe(viewer.outbox, 0, parse_selector("a/+"))
    assert viewer.read() == []
    fanout.unsubscribe(viewer.outbox, 1, parse_selector("a/#"))
    assert [e.reason for e in viewer.read()] == [frames.RemoveReason.UNSUBSCRIBED]
    put(fanout, "a/1", {"v": 9})
    put(fanout, "a/2", {"v": 9})
    assert viewer.read() == []


def test_silence_makes_stale_then_expired_and_speech_makes_fresh():
    fanout = an_edge()
    viewer = Viewer(fanout, "#")
    policy = Policy(stale_ms=1000, ttl_ms=5000)
    put(fanout, "a", {"v": 1}, SECOND, policy)
    viewer.read()
    fanout.sweep(int(1.5 * SECOND))
    assert viewer.read() == []
    fanout.sweep(int(2.5 * SECOND))
    assert [(type(e).__name__, e.since_us) for e in viewer.read()] == [("Staled", SECOND)]
    late = Viewer(fanout, "#")
    assert [type(e).__name__ for e in late.read()] == ["Update", "Staled"]
    put(fanout, "a", {"v": 2}, 3 * SECOND, policy)
    events = viewer.read()
    assert [type(e).__name__ for e in events] == ["Staled", "Update"]
    assert events[1].meta.stale_since_us == 0
    fanout.sweep(9 * SECOND)
    assert [type(e).__name__ for e in viewer.read()] == ["Removed"]
    assert len(fanout.tree) == 0


def test_who_does_not_read_hears_once_whether_a_source_is_silent_however_often_it_was():
    fanout = an_edge()
    viewer, policy = Viewer(fanout, "#"), Policy(stale_ms=500)
    put(fanout, "a", {"v": 0}, policy=policy)
    viewer.read()
    for turn in range(1, 10_000):
        fanout.sweep(turn * 2 * SECOND)
        if turn < 9_999:
            put(fanout, "a", {"v": turn}, turn * 2 * SECOND)
    assert not viewer.outbox.control.overflowed
    stale, update = viewer.read()
    assert (stale.since_us, update.value) == ((9_998 * 2) * SECOND, {"v": 9_998})
    put(fanout, "a", {"v": 0}, 20_000 * SECOND)
    fresh, _ = viewer.read()
    assert fresh.since_us == 0


def test_much_that_ends_at_once_ends_in_pieces():
    fanout = Fanout(TopicTree(10_000))
    viewers = [Viewer(fanout, "few/#") for _ in range(9)]
    policy = Policy(ttl_ms=1000, stale_ms=500)
    for number in range(SWEPT_MAX // 2):
        put(fanout, f"many/{number}", {}, policy=policy)
        put(fanout, f"few/{number}", {}, policy=policy)
    pieces = 0
    for later in (0.6, 1.1):
        while fanout.sweep(int(SECOND * (1 + later))):
            pieces += 1
    assert pieces in range(9, 12)
    assert len(fanout.tree) == 0
    assert not any(viewer.outbox.subscriptions for viewer in viewers)


def test_a_session_that_ends_leaves_nothing_behind():
    fanout = an_edge()
    put(fanout, "a/1", {})
    viewer = Viewer(fanout, "a/+")
    fanout.forget(viewer.outbox, {0: parse_selector("a/+")})
    assert not fanout.tree.get("a/1").subscriptions
    assert not fanout.dirty
    put(fanout, "a/2", {})
    assert not fanout.dirty


def test_removal_is_told_and_a_topic_may_come_back():
    fanout = an_edge()
    viewer = Viewer(fanout, "a")
    put(fanout, "a", {"v": 1})
    viewer.read()
    assert fanout.remove("a")
    assert not fanout.remove("a")
    put(fanout, "a", {"v": 2})
    assert [type(e).__name__ for e in viewer.read()] == ["Removed", "Update"]


CONFLATE = st.sampled_from(["replace", "off", "merge(sum)"])
DEEDS = st.lists(
    st.tuples(
        st.sampled_from(["put", "put", "put", "read", "one", "resume", "leave", "remove", "look"]),
        st.integers(0, 2),
        st.integers(0, 2),
    ),
    max_size=60,
)


def act(fanout, viewers, deed, policy, now):
    verb, who, what = deed
    viewer, path = viewers[who], f"a/{what}"
    topic = fanout.tree.get(path)
    subscription = topic and topic.subscriptions.get(viewer.outbox)
    if verb == "put":
        put(fanout, path, {"v": 1}, now, policy)
    elif verb in {"read", "one"}:
        viewer.read(10**9 if verb == "read" else 1, now)
    elif verb == "remove":
        fanout.remove(path)
    elif verb == "leave":
        fanout.forget(viewer.outbox, {0: ("a", "#")})
        viewers[who] = Viewer(fanout, "a/#")
    elif subscription is not None and subscription.announced and verb == "resume":
        viewer.outbox.resume(subscription, 0, viewer.held[path])
    elif subscription is not None:
        subscription.prefer(0, Preference(gap_us=what))


@given(CONFLATE, DEEDS)
def test_a_change_is_offered_to_those_with_nothing_pending_and_the_others_are_counted(
    conflate, deeds
):
    fanout, policy = an_edge(), Policy(conflate=conflate, keep=5)
    viewers = [Viewer(fanout, "a/#") for _ in range(3)]
    for number, deed in enumerate(deeds):
        act(fanout, viewers, deed, policy, SECOND + number)
        for topic in fanout.tree:
            idle = {o for o, s in topic.subscriptions.items() if s.state is DeliveryState.IDLE}
            assert set(topic.idle) == idle
    if not {"leave", "remove"} & {verb for verb, *_ in deeds}:
        counted = sum(group.conflated for group in fanout.tree.groups.values())
        assert counted == sum(viewer.outbox.conflated for viewer in viewers)


def only_numbers(a, b):
    return float(a) + float(b)


def test_a_value_that_a_merge_does_not_take_changes_nothing():
    fanout = an_edge()
    strict = Merge("strict", only_numbers, lift=float, samples=(1, 2))
    fanout.merges.register(strict)
    policy, viewer = Policy(conflate="merge(strict(v))"), Viewer(fanout, "#")
    for value in ("text", 1, "text", 2):
        if value == "text":
            with pytest.raises(ProtocolError, match="'a' does not take this by merge"):
                put(fanout, "a", {"v": value}, policy=policy)
        else:
            put(fanout, "a", {"v": value}, policy=policy)
            assert [u.value for u in viewer.read()] == [{"v": float(value)}]
    assert len(fanout.tree) == 1


def test_a_topic_whose_first_value_was_refused_is_not_there():
    fanout = an_edge()
    fanout.merges.register(Merge("strict", only_numbers, lift=float, samples=(1, 2)))
    with pytest.raises(ProtocolError):
        put(fanout, "a", {"v": "text"}, policy=Policy(conflate="merge(strict(v))"))
    assert len(fanout.tree) == 0
