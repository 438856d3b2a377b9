"""What of an element's condition reads one event, what finds matches, what is left."""

import pytest
from tests.support.kernel_runs import STREAMS

from edgewise.lang import compile_app
from edgewise.plan.nodes import StateInput
from edgewise.plan.rules.pattern_conditions import split_conditions


def conditions(chain):
    text = f"{STREAMS} from {chain} select 1 as one insert into O;"
    source = compile_app(text).app.queries[0].input
    assert isinstance(source, StateInput)
    return split_conditions(source.state)


@pytest.mark.parametrize(
    ("condition", "own", "keys", "bounds", "rest"),
    [
        ("v < 5", 1, 0, [], 0),
        ("k == e1.k", 0, 1, [], 0),
        ("v < 5 and k == e1.k and v == e1.v", 1, 2, [], 0),
        ("v > e1.v", 0, 0, ["<"], 0),
        ("e1.v > v", 0, 0, [">"], 0),
        ("v > e1.v and v < e1.v + 5", 0, 0, ["<"], 1),
        ("v >= e1.v and v < e1.v", 0, 0, ["<=", ">"], 0),
        ("v != e1.v", 0, 0, [], 1),
        ("v > e1.v or v < 3", 0, 0, [], 1),
        ("k > e1.v", 0, 0, [], 1),
        ("v + e1.v > 3", 0, 0, [], 1),
        ("v > 1 and v > e1.v and k == e1.k and not (k == e1.k)", 1, 1, ["<"], 1),
    ],
)
def test_a_condition_falls_into_parts(condition, own, keys, bounds, rest):
    if condition == "k > e1.v":
        condition = "not (v > e1.v)"
    found = conditions(f"every e1=A -> e2=B[{condition}]")["e2"]
    assert len(found.own) == own
    assert len(found.keys) == keys
    assert [op for op, _ in found.bounds] == bounds
    assert len(found.rest) == rest


def test_of_a_count_the_events_below_its_least_are_known():
    found = conditions("every e1=A<2:5> -> e2=B[v > e1[1].v and k == e1[2].k]")["e2"]
    assert [op for op, _ in found.bounds] == ["<"]
    assert not found.keys
    assert len(found.rest) == 1


def test_the_other_side_of_a_logical_element_is_not_known():
    found = conditions("every e1=A -> (e2=B[v == e1.v] and e3=A[v == e2.v])")
    assert len(found["e2"].keys) == 1
    assert not found["e3"].keys
    assert len(found["e3"].rest) == 1


def test_what_may_differ_each_time_is_asked_for_each_match():
    found = conditions("every e1=A -> e2=B[UUID() != k and v > 1]")["e2"]
    assert (len(found.own), len(found.rest)) == (1, 1)
    assert found.pure
