"""Owners are told apart by what they mean, not by where they stand."""

from tests.support.kernel_plans import kernel_of

from edgewise.kernel.codegen.state_owners import compare
from edgewise.lang import compile_app

HEAD = "define stream S (k string, v int); "
SUM = "from S#window.length(2) select sum(v) as s insert into O;"
COUNT = "from S select count() as n insert into P;"


def layout(text, head=HEAD):
    return kernel_of(compile_app(head + text).app).layout


def test_queries_without_a_name_are_known_by_what_they_say():
    change = compare([layout(SUM)], [layout(COUNT + SUM)])
    assert change.kept == ("query query2",)
    assert change.added == ("query query1",)


def test_two_that_say_the_same_are_two():
    one, two = layout(SUM), layout(SUM + SUM)
    assert len(set(two.cells)) == 2 * len(set(one.cells))
    assert compare([one], [two]).kept == ("query query1",)


def test_other_attributes_of_a_stream_are_another_query():
    wide = "define stream S (k string, w int, v int); "
    assert compare([layout(SUM)], [layout(SUM, wide)]).changed == ("query query1",)


def test_another_home_of_the_same_state_is_another_owner():
    """A pattern alone in its partition keeps its own keys; beside another query it does not."""
    pattern = "@info(name='p') from every e1=S -> e2=S[v != e1.v] select e1.v as a insert into O;"
    alone, beside = (
        layout(f"partition with (k of S) begin {text} end;")
        for text in (pattern, pattern + "from S select v insert into Q;")
    )
    assert "query p" in compare([alone], [beside]).changed
