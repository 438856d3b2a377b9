import pytest
from tests.support.compiled_plans import query, refused, warned

from edgewise.plan.exprs import Field
from edgewise.plan.nodes import (
    AbsentState,
    ChainState,
    CountState,
    EveryState,
    LogicalState,
    StateKind,
    StreamState,
)


def states(text):
    return query(f"from {text} insert into X;").input


def test_a_pattern():
    found = states(
        "every a=A -> b=B[k == a.k]<2:> -> not A for 1 sec within 5 sec select b[0].v as x"
    )
    assert (found.kind, found.within_ms) == (StateKind.PATTERN, 5000)
    first, second, third = found.state.states
    assert first == EveryState(StreamState("a", "A"))
    assert isinstance(second, CountState)
    condition = second.state.handlers[0].condition
    assert (condition.left.slot, condition.right.slot) == ("b", "a")
    assert third == AbsentState("@2", "A", (), 1000)


def test_a_sequence():
    found = states("a=A, b=B+ select a.v as x")
    assert found.kind is StateKind.SEQUENCE
    assert isinstance(found.state, ChainState)


def test_unnamed_elements_answer_to_their_stream():
    found = query("from A -> B select A.v as x insert into X;")
    assert isinstance(found.select.items[0].expr, Field)
    assert found.select.items[0].expr.slot == "@0"


def test_logical_pairs():
    found = states("not A and b=B select b.v as x").state
    assert found == LogicalState("and", AbsentState("@0", "A"), StreamState("b", "B"))


def test_a_filter_may_look_at_what_its_own_element_matched_before():
    found = states("a=A -> b=B[b[last].v < v or b[last].v is null]<1:> select b[last].v as x")
    handler = found.state.states[1].state.handlers[0].condition
    assert (handler.left.left.slot, handler.left.left.index) == ("b", -1)
    assert (handler.left.right.slot, handler.left.right.index) == ("b", None)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("every a=T -> b=B select b.v as x", "'T' is a table, not a stream or window"),
        ("a=A -> not B select a.v as x", "an absent element needs a time"),
        ("not A or b=B select b.v as x", "an absent element needs a time"),
        ("a=A, every b=B select a.v as x", "'every' in the middle of a sequence"),
        ("every (a=A -> every b=B) select a.v as x", "'every' inside 'every'"),
        ("a=A -> b=B[v > c.v] select a.v as x", "'c' is not an input here"),
    ],
)
def test_what_is_refused(text, message):
    assert refused(f"from {text} insert into X;") == [message]


def test_two_elements_of_one_name_mean_the_first():
    text = "from every a=A -> a=B select a.v as x insert into X;"
    assert "two elements are called 'a'; it means the first" in warned(text)
    assert query(text).select.items[0].expr.slot == "a"
