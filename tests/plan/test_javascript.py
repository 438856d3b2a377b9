import pickle
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgewise.errors import BadEvent
from edgewise.event.types import AttrType
from edgewise.plan.javascript import JavaScript


def call(body, *args, returns=AttrType.OBJECT):
    return JavaScript("f", body, returns)(*args)


TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))


@given(st.one_of(st.none(), st.booleans(), TEXTS, st.integers(-(2**53), 2**53)))
def test_values_come_back_as_they_went(value):
    kind = {bool: AttrType.BOOL, str: AttrType.STRING}.get(type(value), AttrType.LONG)
    assert call("return data[0];", value, returns=kind) == value


def test_lists_and_maps_are_arrays_and_objects():
    assert call("return data[0].concat(data[1].a);", [1, 2], {"a": [3]}) == [1, 2, 3]


@pytest.mark.parametrize(
    ("result", "kind", "value"),
    [
        ("7 / 2", AttrType.INT, 3), ("7 / 2", AttrType.DOUBLE, 3.5),
        ("2 ** 40", AttrType.INT, None),
        ("2 ** 40", AttrType.LONG, 2**40), ("0.1", AttrType.FLOAT, 0.10000000149011612),
        ("1 / 0", AttrType.INT, None), ("1 / 0", AttrType.DOUBLE, float("inf")),
        ("3.0", AttrType.STRING, "3"), ("'x'", AttrType.INT, None),
        ("undefined", AttrType.INT, None), ("1", AttrType.BOOL, None),
        ("true", AttrType.BOOL, True), ("false", AttrType.STRING, "false"),
    ],
)  # fmt: skip
def test_a_result_is_of_the_declared_type(result, kind, value):
    assert call(f"return {result};", returns=kind) == value


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("for (;;) {}", "too long"),
        ("var a = []; for (;;) a.push('x' + a.length);", "memory"),
        ("function g() { return g() + 1; } return g();", "stack overflow"),
        ("return missing + 1;", "'missing' is not defined"),
        ("throw new Error('mine');", "mine"),
    ],
)
def test_a_call_is_limited_and_its_failure_is_the_events(body, why):
    with pytest.raises(BadEvent, match=why):
        call(body)


@pytest.mark.parametrize(
    "name", ["require", "process", "std", "os", "fetch", "setTimeout", "Java"]
)
def test_the_outside_is_not_there(name):
    assert call(f"return typeof {name};", returns=AttrType.STRING) == "undefined"


def test_a_function_travels_and_runs_in_any_thread():
    function = pickle.loads(pickle.dumps(JavaScript("f", "return data[0] + 1;", AttrType.INT)))
    found = []
    threads = [threading.Thread(target=lambda: found.append(function(1))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [function(1), *found] == [2, 2, 2, 2]


def test_a_mistake_in_the_text_is_found_before_a_call():
    with pytest.raises(ValueError, match="SyntaxError"):
        JavaScript("f", "return data[;", AttrType.INT).compile()
