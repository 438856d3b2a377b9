from tests.support.parsed_trees import problems, query

from edgewise.event.types import AttrType
from edgewise.lang.syntax.expr import AttrRef, Call, Literal
from edgewise.lang.syntax.query import Filter, Join, Name, Query, Source, StreamFunction


def test_handlers_around_the_window():
    source = query("from S[b]#log()#window.length(2)#[b] insert into T").input
    condition = Filter(AttrRef("b"))
    window = Call("length", (Literal(AttrType.INT, 2),))
    before = (condition, StreamFunction(Call("log")))
    assert source == Source(Name("S"), before, window, (condition,))


def test_joins_of_every_kind():
    for text, kind in [
        ("join", "inner"),
        ("inner join", "inner"),
        ("left outer join", "left"),
        ("right outer join", "right"),
        ("full outer join", "full"),
    ]:
        join = query(f"from A as a unidirectional {text} B as b on a.k == b.k insert into T").input
        assert isinstance(join, Join)
        assert (join.kind, join.trigger, join.left.alias, join.right.alias) == (
            kind,
            "left",
            "a",
            "b",
        )


def test_a_query_in_parentheses():
    source = query("from ((from S select v return))#window.length(1) insert into T").input
    assert isinstance(source.stream, Query)
    assert source.stream.output.kind == "return"


def test_what_is_wrong():
    start = "define stream S (v int); from S"
    assert problems(start + "#window.length(1)#window.length(2) insert into T") == [
        "a stream takes one window only"
    ]
    assert problems(start + "#window.length(1)[v > 1] join S insert into T") == [
        "a side of a join ends with its window"
    ]
    assert problems("define stream S (v int); from (from S insert into T) insert into U") == [
        "a query in parentheses ends with 'return'"
    ]
    assert problems(start + " outer join S insert into T")[0].startswith("expected 'left'")
