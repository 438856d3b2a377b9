import pytest
from tests.support.compiled_plans import planned, refused, warned

from edgewise.plan.nodes import EventType, InsertInto


def test_queries_are_named_by_their_author_or_by_number():
    app = planned("from A insert into X; @info(name='mine') from A insert into Y; "
                  "from A insert into Z;")  # fmt: skip
    assert [q.name for q in app.queries] == ["query1", "mine", "query3"]


def test_a_number_gives_way_to_a_name():
    app = planned("from A insert into X; @info(name='query1') from A insert into Y;")
    assert [q.name for q in app.queries] == ["query1_", "query1"]


def test_two_queries_of_one_name_are_told_apart():
    text = "@info(name='q') from A insert into X; @info(name='q') from A insert into Y;"
    assert [q.name for q in planned(text).queries] == ["q", "q_"]
    assert warned(text) == ["two queries are called 'q'"]


def test_an_inner_query_feeds_a_stream_nobody_can_name():
    text = "from (from A[v > 1] select k return all events)#window.length(2) insert into X;"
    app = planned(text)
    inner, outer = app.queries
    assert inner.output == InsertInto("@inner1", EventType.ALL)
    assert outer.input.stream == "@inner1"
    assert app.stream("@inner1").anonymous
    assert [s.name for s in app.outputs] == ["X"]


MANY_AT_ONCE = [
    ("from S[x > 1]#window.length('a') select y, str:nope(k) as n insert into X;",
        ["there is no attribute 'x' here", "#window.length: count must be int, this is string",
         "there is no attribute 'y' here", "there is no function 'str:nope'"]),
    ("from S[x > y and k > 5] select k insert into X;",
        ["there is no attribute 'x' here", "there is no attribute 'y' here",
         "'>' needs numbers, not string and int"]),
    ("from S#nope() select made, k + 1 as n insert into X;",
        ["there is no stream function 'nope'", "'+' needs numbers, this is string"]),
    ("from A join Z#window.time('x') as b on A.q == b.z select A.r as r, b.s as s insert into X;",
        ["there is no stream or window or table or aggregation 'Z'",
         "#window.time: time must be int or long, this is string",
         "'A' has no attribute 'q'", "'A' has no attribute 'r'"]),
    ("from every e1=A[x > 1] -> e2=B[y == e1.k] select e1.z as z, e2.v as v insert into X;",
        ["there is no attribute 'x' here", "there is no attribute 'y' here",
         "'e1' has no attribute 'z'"]),
    ("from A select q as k update T set T.z = 1, T.v = 'a' on T.y == k;",
        ["there is no attribute 'q' here", "'T' has no column 'z'",
         "column 'v' is int, this is string", "'T' has no attribute 'y'"]),
    ("from S select x, k group by y having z > 1 and k > 2 limit 'a' insert into X;",
        ["there is no attribute 'x' here", "'limit' needs a whole number, 0 or more"]),
    ("from S select math:max(x, k) as a insert into X; from X select b insert into Y;",
        ["there is no attribute 'x' here"]),
    ("from S select k having v > 'a' insert into X; from X select b insert into Y;",
        ["'>' needs numbers, not int and string", "there is no attribute 'b' here"]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "messages"), MANY_AT_ONCE)
def test_one_refused_clause_does_not_hide_the_next(text, messages):
    assert refused(text) == messages


def test_a_part_that_cannot_be_read_does_not_hide_the_others():
    text = "from A selec k insert into X;\nfrom A[k > 1] select f(v) as w insert into Y;\n"
    text += "from X select k insert into Z;"
    assert refused(text) == [
        "expected 'insert' or 'delete' or 'update' or 'return', found 'selec'",
        "'>' needs numbers, not string and int",
    ]


def test_negations_in_comparisons_are_read_in_linear_time():
    depth = 25
    text = f"from B[{'not (' * depth}v > 1{') == true' * depth}] insert into X;"
    assert planned(text).queries
