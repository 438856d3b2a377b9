import pytest
from tests.support.compiled_plans import query, refused, warned

from edgewise.plan.nodes import Filter, JoinKind, StoreKind, StreamCall

JOIN = "from A#window.length(1) as a {} B#window.length(1) as b on a.k == b.k select a.v as x "


def test_filters_before_and_after_the_window():
    found = query("from S[b]#window.length(1)[v > 1] insert into X;").input
    assert isinstance(found.before[0], Filter)
    assert isinstance(found.after[0], Filter)
    assert found.window.name == "length"


def test_stream_functions_add_attributes():
    found = query("from S#pol2Cart(p, p)[x > 1.0] select x, y insert into X;")
    assert isinstance(found.input.before[0], StreamCall)
    assert [a.name for a in found.input.before[0].adds] == ["x", "y"]


@pytest.mark.parametrize("kind", JoinKind)
def test_joins(kind):
    words = "join" if kind is JoinKind.INNER else f"{kind.value} outer join"
    join = query(JOIN.format(words) + "insert into X;").input
    assert (join.kind, join.left.triggers, join.right.triggers) == (kind, True, True)


def test_one_side_may_trigger_alone_and_tables_never_do():
    join = query(JOIN.format("unidirectional join") + "insert into X;").input
    assert (join.left.triggers, join.right.triggers) == (True, False)
    join = query("from A join T on A.k == T.k select T.v as x insert into X;").input
    assert (join.right.kind, join.right.triggers) == (StoreKind.TABLE, False)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("from S#polar(p) insert into X;", "there is no stream function 'polar'"),
        ("from S#log(1) insert into X;", "'log' does not take (int)"),
        ("from A join A select A.v as x insert into X;", "both sides are called 'A'"),
        ("from T join T as u select u.v as x insert into X;",
            "no side of this join triggers it"),
        ("from A join B within '2020-**' per 'days' select A.v as x insert into X;",
            "'within ... per' is only legal with an aggregation"),
        ("define window W (v int) length(1); from W#window.length(2) insert into X;",
            "a named window takes no further window"),
    ],
)  # fmt: skip
def test_what_is_refused(text, message):
    assert refused(text) == [message]


def test_aggregations_are_read_over_a_range():
    define = "define aggregation G from S select k, sum(v) as t group by k aggregate every sec;"
    join = define + "from A join G {} select t insert into X;"
    found = query(join.format("within '2020-**', '2021-**' per 'days'")).input
    assert (len(found.within), found.per.value) == (2, "days")
    assert refused(join.format("")) == ["an aggregation is read with 'within' and 'per'"]
    assert refused(join.format("within '2020' per 'eons'")) == ["'eons' is not a duration"]


def test_a_join_that_keeps_nothing_is_unwise():
    text = "from A join B on A.k == B.k select A.v as x insert into X;"
    assert warned(text) == ["no side of this join keeps events, so none will meet"]
