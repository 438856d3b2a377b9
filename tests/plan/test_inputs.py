from edgewise.plan.inputs import (
    AbsentState,
    ChainState,
    CountState,
    EveryState,
    JoinInput,
    JoinSide,
    LogicalState,
    StateInput,
    StateKind,
    StreamInput,
    StreamState,
    state_leaves,
    streams_of,
)

A, B, C = (StreamState(slot, stream) for slot, stream in (("e1", "A"), ("e2", "B"), ("e3", "A")))


def test_leaves_come_in_the_order_they_are_written():
    no_b = AbsentState("@1", "B", (), 1000)
    state = ChainState((EveryState(A), CountState(B, 2, None), LogicalState("and", no_b, C)))
    assert state_leaves(state) == (A, B, no_b, C)


def test_streams_read_are_named_once():
    assert streams_of(StateInput(StateKind.PATTERN, ChainState((A, B, C)))) == ("A", "B")
    assert streams_of(StreamInput("A", "A")) == ("A",)
    join = JoinInput(JoinSide(StreamInput("A", "l")), JoinSide(StreamInput("B", "r")))
    assert streams_of(join) == ("A", "B")
