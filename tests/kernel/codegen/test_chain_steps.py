"""Which patterns are chains, and by which attribute their matches are held together."""

import pytest
from tests.support.kernel_runs import STREAMS

from edgewise.kernel.codegen.chain_steps import chain_of, stream_keys
from edgewise.kernel.codegen.fragment_builder import FragmentBuilder
from edgewise.lang import compile_app
from edgewise.plan.fragments import Fragment


def chain(body):
    app = compile_app(STREAMS + body).app
    fragment = Fragment("f", tuple(q.name for q in app.queries))
    return chain_of(FragmentBuilder(app, fragment, frozenset()), app.queries[0])


def pattern(text):
    return f"from {text} select e1.v as a insert into O;"


@pytest.mark.parametrize(
    ("text", "keys", "crossing"),
    [
        ("every e1=A -> e2=B", ["", ""], [0, 0]),
        ("every e1=A -> e2=B[k == e1.k]", ["k", "k"], [0, 0]),
        ("every e1=A -> e2=B[k == e1.k and v != e1.v]", ["k", "k"], [0, 1]),
        ("every e1=A -> e2=B[k == e1.k] -> e3=A[k == e2.k]", ["k", "k", "k"], [0, 0, 0]),
        ("every e1=A -> e2=B[v == e1.v] -> e3=A[v == e1.v]", ["v", "v", "v"], [0, 0, 0]),
    ],
)
def test_a_chain_is_held_by_the_key_that_its_events_share(text, keys, crossing):
    found = chain(pattern(text))
    assert found is not None
    assert [step.key for step in found] == keys
    assert [len(step.cross) for step in found] == crossing


@pytest.mark.parametrize(
    "text",
    [
        "e1=A -> e2=B",
        "every (e1=A -> e2=B) -> e3=A",
        "every e1=A<2:3> -> e2=B",
        "every e1=A -> e2=B[v > e1.v]",
        "every e1=A -> e2=B[k == e1.k] -> e3=A[v > e1.v]",
        "every e1=A -> e2=B[k == e1.k] -> e3=A",
        "every e1=A -> e2=B[k == e1.k] -> e3=A[v == e1.v]",
        "every e1=A, e2=B",
    ],
)
def test_other_patterns_are_none(text):
    assert chain(pattern(text)) is None


def test_a_stream_with_two_keys_has_none():
    two = (
        "define stream P (a string, b string); "
        "from every e1=P -> e2=P[b == e1.a] select e1.a as a insert into O;"
    )
    found = chain(two)
    assert found is not None
    assert stream_keys(found) == {}
    same = chain(pattern("every e1=A -> e2=B[k == e1.k]"))
    assert stream_keys(same) == {"A": "k", "B": "k"}
