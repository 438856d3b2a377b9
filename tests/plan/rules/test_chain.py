"""Where a chain is cut, and where it is not."""

import pytest

from edgewise.lang import compile_app
from edgewise.plan.rules.chain import split_into_stages
from edgewise.plan.rules.keys import split_into_fragments

HEAD = "define stream S (u string, r string, v int); define stream T (u string, v int); "
BY_USER = "from S#window.time(1 sec) select u, r, sum(v) as n group by u insert into X; "
BY_REGION = "from X select r, max(n) as n group by r insert into O;"


def cut(text):
    return [(f.queries, f.inputs, f.keys) for f in split_into_stages(compile_app(HEAD + text).app)]


def test_queries_with_different_keys_are_stages_in_turn():
    found = cut("define stream X (u string, r string, n long); " + BY_REGION + BY_USER)
    assert found == [
        (("query2",), ("S",), (("S", ("u",)),)),
        (("query1",), ("X",), (("X", ("r",)),)),
    ]


def test_a_chain_may_have_three_stages():
    third = "from Y select u, count() as n group by u insert into O;"
    second = "from X select r, u, max(n) as n group by r insert into Y; "
    assert [inputs for _, inputs, _ in cut(BY_USER + second + third)] == [("S",), ("X",), ("Y",)]


def test_a_chain_that_has_one_key_is_not_cut():
    text = "from S select u, sum(v) as n group by u insert into X; "
    text += "from X select u, max(n) as n group by u insert into O;"
    assert cut(text) == [(("query1", "query2"), ("S",), (("S", ("u",)),))]


def test_what_no_stage_can_make_better_stays_whole():
    text = "from S select sum(v) as n insert into X; from X select max(n) as n insert into O;"
    assert len(cut(text)) == 1


@pytest.mark.parametrize(
    "text",
    [
        BY_USER.replace("insert into", "insert all events into") + BY_REGION,
        BY_USER.replace("time(1 sec)", "timeBatch(1 sec)") + BY_REGION,
        BY_USER.replace("insert into", "output last every 2 events insert into") + BY_REGION,
        BY_USER.replace("group by u", "group by u order by n") + BY_REGION,
        BY_USER + "from T select u, u as r, sum(v) as n group by u insert into X; " + BY_REGION,
        BY_USER + BY_REGION + " from S select r, sum(v) as n group by r insert into O;",
        BY_USER
        + "from X#window.time(1 sec) join T#window.time(1 sec) on X.r == T.u "
        + "select X.r as r insert into O;",
    ],
)
def test_where_somebody_could_tell_a_chain_is_not_cut(text):
    app = compile_app(HEAD + text).app
    assert not {n for f in split_into_stages(app) for n in f.inputs} & {"X"}


def test_late_events_are_put_in_order_once():
    late = HEAD.replace("define", "@lateness('1 sec') define")
    app = compile_app(late + BY_USER + BY_REGION).app
    assert split_into_stages(app) == split_into_fragments(app)


def test_rings_are_not_cut():
    app = compile_app("define stream A (v int); from A insert into B; from B insert into A;").app
    assert split_into_stages(app) == split_into_fragments(app)
