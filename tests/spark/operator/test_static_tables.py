"""A table that comes as a frame takes no key away from the queries that read it."""

import pytest

from edgewise.lang.compiler import compile_app
from edgewise.spark.operator.static_tables import (
    add_table_streams,
    name_table_stream,
    split_with_tables,
)

JOINED = (
    "from S#window.time(1 sec) join P on S.k == P.k "
    "select S.k as k, sum(w) as n group by S.k insert into O;"
)
LOOKED_UP = (
    "from S[P.k == k in P]#window.time(1 sec) select k, count() as n group by k insert into O;"
)
HEAD = "define stream S (k string, v int); define table P (k string, w int); "


def split(text, *tables):
    app = add_table_streams(compile_app(HEAD + text).app, tables)
    return split_with_tables(app, tables)


def test_a_join_without_other_state_is_spread_by_whole_events():
    [found] = split("from S join P on S.k == P.k select S.k as k, w insert into O;", "P")
    assert found.key_of("S") == ("k", "v")
    assert found.inputs == ("S", name_table_stream("P"))
    assert found.stores == ("P",)


@pytest.mark.parametrize("text", [LOOKED_UP, JOINED])
def test_a_query_keeps_the_key_it_has_without_the_table(text):
    [found] = split(text, "P")
    assert found.key_of("S") == ("k",)


def test_a_group_by_of_the_table_is_no_key_of_the_stream():
    [found] = split(
        "from S#window.time(1 sec) join P on S.v == P.w "
        "select P.k as k, count() as n group by P.k insert into O;",
        "P",
    )
    assert not found.keyed


def test_each_stage_that_reads_a_table_has_a_copy():
    found = split(
        "define stream T (k string); "
        "from S join P on S.k == P.k select S.k as k, w insert into A; "
        "from T join P on T.k == P.k select T.k as k, w insert into B;",
        "P",
    )
    assert [f.stores for f in found] == [("P",), ("P",)]


def test_a_table_that_queries_write_belongs_to_all_keys():
    [found] = split(
        "from S insert into P; from S join P on S.k == P.k select S.k as k, w insert into O;", "P"
    )
    assert not found.keyed
    assert name_table_stream("P") in found.inputs


def test_a_trigger_goes_by_the_time_of_what_others_read():
    text = "define trigger T at every 1 sec; from T select triggered_time as t insert into O; "
    assert split(text)[0].inputs == ()
    assert split(text + "from S select k insert into Z;")[0].inputs == ("S",)
