from tests.lang.plans import planned, warned

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
