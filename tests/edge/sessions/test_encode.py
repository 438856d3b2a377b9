from hypothesis import given
from hypothesis import strategies as st

from edgewise.edge.sessions.encode import encode_snapshot, encode_step, encode_topic, encode_value
from edgewise.edge.topics.tree import Policy, TopicTree
from edgewise.wire import codec, frames
from edgewise.wire.frames import How
from edgewise.wire.view import View


def a_topic():
    return TopicTree(1).create("a", Policy())


def test_a_step_is_encoded_once_for_all_clients_on_the_same_base():
    topic = a_topic()
    base = topic.change(1, 1, 100, {"x": 1, "y": "long text that stays"})
    head = topic.change(1, 5, 900, {"x": 2, "y": "long text that stays"})
    first = encode_step(topic, base, head)
    assert encode_step(topic, base, head) is first
    assert codec.decode_from_server(first) == frames.Delta(topic.alias, 4, 1, 800, [{"x": 2}])


def test_a_value_that_changed_entirely_goes_whole():
    topic = a_topic()
    base = topic.change(1, 1, 100, {"x": 1})
    head = topic.change(1, 2, 100, {"x": 2})
    assert isinstance(codec.decode_from_server(encode_step(topic, base, head)), frames.Next)


def test_another_epoch_goes_absolute():
    topic = a_topic()
    base = topic.change(1, 9, 100, {"x": 1})
    head = topic.change(2, 3, 100, {"x": 1})
    frame = codec.decode_from_server(encode_step(topic, base, head))
    assert (frame.how, frame.epoch, frame.to) == (How.UPDATE, 2, 3)


def test_what_was_encoded_for_an_old_head_is_let_go():
    topic = a_topic()
    base = topic.change(1, 1, 100, {"x": 1})
    encode_snapshot(topic, base)
    topic.change(1, 2, 100, {"x": 2})
    assert base.frames == {}


@given(
    st.lists(
        st.dictionaries(
            st.sampled_from("abc"), st.integers(-(2**63), 2**63 - 1) | st.text(), max_size=3
        ),
        min_size=1,
        max_size=8,
    ),
    st.data(),
)
def test_any_chain_of_steps_rebuilds_the_head(values, data):
    topic, view, sent = a_topic(), View(), None
    view.take(codec.decode_from_server(encode_topic(topic)))
    for i, value in enumerate(values):
        head = topic.change(1, i + 1, i, value)
        if i and data.draw(st.booleans()):
            continue
        data_out = encode_snapshot(topic, head) if sent is None else encode_step(topic, sent, head)
        view.take(codec.decode_from_server(data_out))
        sent = head
        assert view.value("a") == value


def test_a_past_change_can_be_told_as_what_it_is():
    topic = a_topic()
    frame = encode_value(
        topic, topic.change(1, 7, 5, {"x": 1}), How.REPLAY, start=6, count=1, value={}
    )
    assert codec.decode_from_server(frame).how is How.REPLAY
