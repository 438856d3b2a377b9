from edgewise.event.types import AttrType
from edgewise.plan.exprs import And, Compare, Const, Field, Or
from edgewise.plan.nodes import ChainState, Filter, StateInput, StateKind, StreamState
from edgewise.plan.rules.correlation import correlate, find_equal_slots

ONE = Const(AttrType.INT, 1)


def at(slot, name, kind=AttrType.STRING):
    return Field(kind, slot, name)


def equal(left, right):
    return Compare("==", left, right)


def pattern(*elements):
    states = tuple(
        StreamState(slot, "S", tuple(Filter(c) for c in conditions))
        for slot, *conditions in elements
    )
    return StateInput(StateKind.PATTERN, ChainState(states))


def test_equalities_add_up_over_elements():
    found = pattern(
        ("e1",),
        ("e2", equal(at("e2", "k"), at("e1", "key"))),
        (
            "e3",
            And(equal(at("e3", "k"), at("e2", "k")), Compare(">", at("e3", "v"), at("e1", "v"))),
        ),
    )
    assert correlate(found) == [{"e2": "k", "e1": "key", "e3": "k"}]


def test_an_element_without_an_equality_leaves_no_key():
    assert correlate(pattern(("e1",), ("e2", equal(at("e2", "k"), at("e1", "k"))), ("e3",))) == []


def test_what_may_be_unequal_ties_nothing():
    either = Or(equal(at("a", "k"), at("b", "k")), equal(at("a", "j"), at("b", "j")))
    double = AttrType.DOUBLE
    fractions = equal(at("a", "p", double), at("b", "p", double))
    mixed = equal(at("a", "i", AttrType.INT), at("b", "l", AttrType.LONG))
    assert find_equal_slots([either, fractions, mixed]) == []
