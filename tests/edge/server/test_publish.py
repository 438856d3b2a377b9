import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgewise.edge.server.publish import describe_change, describe_topic, publish_frame
from edgewise.edge.sessions.fanout import Fanout
from edgewise.edge.sessions.outbox import Outbox
from edgewise.edge.topics.tree import TopicTree
from edgewise.errors import ProtocolError
from edgewise.wire import codec
from edgewise.wire.codes import ProtocolCode
from edgewise.wire.frames import How, Publish, PublishOptions, TopicKind

ROWS = st.dictionaries(st.sampled_from("xy"), st.integers(0, 9), max_size=2)
PUTS = st.lists(
    st.builds(
        lambda path, row, key, remove: Publish(
            1,
            path,
            row,
            PublishOptions(
                kind=TopicKind[path.upper()],
                key=key if path == "table" else "",
                remove=remove,
            ),
        ),
        st.sampled_from(["record", "table", "series"]),
        ROWS,
        st.sampled_from(["", "a", "b"]),
        st.sampled_from([False, False, False, True]),
    ),
    max_size=30,
)


def state(fanout):
    return {t.path: (t.policy, t.head.value, t.head.epoch, t.head.to) for t in fanout.tree}


@given(PUTS, st.integers(0, 30))
def test_a_worker_that_repeats_each_publication_has_the_same_topics(puts, cut):
    """From the start, or from a copy made in the middle."""
    first, second, third = (Fanout(TopicTree(10)) for _ in range(3))
    for i, frame in enumerate(puts):
        if i == cut:
            for topic in first.tree:
                for change in describe_topic(topic):
                    third.apply(change, i)
        try:
            publish_frame(first, frame, i)
        except ProtocolError as error:
            assert error.code == ProtocolCode.NOT_FOUND
            continue
        change = describe_change(first, frame)
        second.apply(change, i)
        if i >= cut:
            third.apply(change, i)
    assert state(second) == state(first)
    if cut < len(puts):
        copied = state(third)
        for path, (policy, value, epoch, to) in state(first).items():
            if value or path != "table":  # an empty table is not told before its first row
                assert copied[path][0] == policy
                assert copied[path][2:] == (epoch, to)
                assert plain(copied[path][1]) == plain(value)


def plain(value):
    """A copied series counts its entries anew."""
    return [entry[1:] for entry in value] if isinstance(value, list) else value


@pytest.mark.parametrize(
    ("frame", "code"),
    [
        (Publish(1, "a", 17), ProtocolCode.BAD_VALUE),
        (Publish(1, "a", {1: 2}), ProtocolCode.BAD_VALUE),
        (Publish(1, "a", {}, PublishOptions(kind=3)), ProtocolCode.BAD_VALUE),
        (Publish(1, "a", {}, PublishOptions(kind=9)), ProtocolCode.BAD_VALUE),
        (Publish(1, "a", None, PublishOptions(remove=True)), ProtocolCode.NOT_FOUND),
    ],
)
def test_what_a_topic_does_not_take_changes_nothing(frame, code):
    fanout = Fanout(TopicTree(10))
    with pytest.raises(ProtocolError) as refused:
        publish_frame(fanout, frame, 0)
    assert refused.value.code == code
    assert not len(fanout.tree)


def test_a_client_that_was_away_while_a_topic_came_anew_gets_the_new_value():
    """Also when the edge itself came anew."""
    first, second = (Fanout(TopicTree(10)) for _ in range(2))
    for fanout, now in ((first, 1000), (second, 2000)):
        publish_frame(fanout, Publish(1, "a", {"v": now}), now)
    publish_frame(first, Publish(2, "a", None, PublishOptions(remove=True)), 1500)
    publish_frame(first, Publish(3, "a", {"v": 1600}), 1600)
    for fanout in (first, second):
        outbox = Outbox(10, 1000, 10)
        fanout.subscribe(outbox, 1, ("a",), have={"a": (0, 1001)})
        _, value = map(codec.decode_from_server, outbox.take(1000, 3000))
        assert value.how is How.CATCH_UP
        assert value.value == fanout.tree.get("a").head.value
