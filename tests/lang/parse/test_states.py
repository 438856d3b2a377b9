import pytest
from tests.support.parsed_trees import problems, query

from edgewise.lang.syntax.expr import Duration
from edgewise.lang.syntax.query import (
    Absent,
    Both,
    Chain,
    Count,
    Element,
    Every,
    Name,
    Source,
    StateInput,
)

SA, SB = Source(Name("A")), Source(Name("B"))
A, B = Element(SA, "a"), Element(SB, "b")
SECOND = Duration(1000)


def state(text):
    found = query(f"from {text} insert into T").input
    assert isinstance(found, StateInput)
    return found


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("a=A -> b=B", Chain((A, B))),
        ("A -> B", Chain((Element(SA), Element(SB)))),
        ("every a=A -> b=B", Chain((Every(A), B))),
        ("every (a=A -> b=B)", Every(Chain((A, B)))),
        ("a=A -> every b=B", Chain((A, Every(B)))),
        ("(a=A -> b=B) -> A", Chain((A, B, Element(SA)))),
        ("a=A<2:5> -> b=B", Chain((Count(A, 2, 5), B))),
        ("a=A<2> -> b=B<2:>", Chain((Count(A, 2, 2), Count(B, 2, None)))),
        ("a=A<:3> -> B", Chain((Count(A, 0, 3), Element(SB)))),
        ("a=A and b=B", Both("and", A, B)),
        ("not A for 1 sec -> b=B", Chain((Absent(SA, SECOND), B))),
        ("every not A for 1 sec", Every(Absent(SA, SECOND))),
        ("not A and b=B", Both("and", Absent(SA), B)),
        ("(not A for 1 sec or b=B) -> A", Chain((Both("or", Absent(SA, SECOND), B), Element(SA)))),
        ("b=B -> (not A for 1 sec and a=A)", Chain((B, Both("and", Absent(SA, SECOND), A)))),
    ],
)
def test_patterns(text, tree):
    assert state(text) == StateInput("pattern", tree)


def test_sequences():
    tree = Chain((Every(Count(A, 1, None)), Count(B, 0, 1), Count(Element(SA), 0, None)))
    assert state("every a=A+, b=B?, A*") == StateInput("sequence", tree)


def test_within_holds_for_the_whole():
    assert state("a=A -> b=B within 1 sec").within == SECOND
    assert state("(a=A -> b=B) within 1 sec").within == SECOND


def test_a_stream_may_be_called_every():
    assert not isinstance(query("from every[b] select v insert into T").input, StateInput)


def test_what_is_wrong():
    start = "define stream A (v int); from "
    end = " insert into T"
    assert problems(start + "a=A -> b=A, c=A" + end) == [
        "a pattern and a sequence cannot be mixed"
    ]
    assert problems(start + "a=A+ -> b=A" + end) == ["only a sequence takes *, + and ?"]
    assert problems(start + "a=A and b=A and c=A" + end) == ["more than two elements joined"]
    assert problems(start + "a=A<5:2> -> A" + end) == ["at least 5 and at most 2 can never match"]
    assert problems(start + "a=A#window.length(1) -> A" + end) == [
        "a pattern element takes no window"
    ]
    assert problems(start + "(from A return) -> A" + end) == [
        "a pattern element is a stream, no query"
    ]
