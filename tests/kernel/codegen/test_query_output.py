import itertools

import pytest
from tests.support.kernel_runs import data, engine, feed

from edgewise.errors import AppError


def test_return_gives_rows_to_who_listens_to_the_query():
    running = engine("@info(name='q') from A select v return;")
    feed(running, [("A", 1, "x", 1)])
    assert [(e.stream, e.data) for e in running.take()] == [("@q", (1,))]


def test_rows_for_a_table_leave_no_event():
    running = engine("define table T (k string, v int); @info(name='q') from A insert into T;")
    feed(running, [("A", 1, "x", 1)])
    assert [e.stream for e in running.take()] == ["@q"]


HEAD = """
define stream S (k string, v int); define stream T (k string, v int); define stream Ask (k string);
@PrimaryKey('k') define table U (k string, v int); define table P (k string, v int);
define window W (k string, v int) length(5);
from S insert into U; from S insert into P; from S insert into W;
from Ask join U on Ask.k == U.k select U.k as k, U.v as v insert into O;
"""
EVENTS = [
    ("S", 1, "a", 1), ("S", 2, "b", 2), ("T", 3, "a", 7), ("T", 4, "c", 8), ("S", 5, "c", 4),
    ("T", 6, "a", 9), ("Ask", 7, "a"), ("Ask", 8, "b"), ("Ask", 9, "c"), 9000,
]  # fmt: skip
SOURCES = {  # what a query reads, and how its output may call it
    "T": ["T"],
    "T[v > 0]#window.length(2)": ["T"],
    "T#window.lengthBatch(1)": ["T"],
    "W": ["W"],
    "T#window.length(3) as a join S#window.length(3) as b on a.k == b.k": ["a", "b"],
    "T as a join P as p on a.k == p.k": ["a", "p"],
    "T left outer join W on T.k == W.k": ["T"],
    "every e1=S -> e2=T[k == e1.k]": ["e1", "e2"],
    "every e1=S, e2=T": ["e1[0]", "e2[-1]"],
    "every e1=S<1:2> -> e2=T": ["e1[0]", "e1[last]", "e2"],
    "e1=S or e2=T": ["e1", "e2"],
}
SELECTS = [
    "",
    "select {r}.k as k, {r}.v as v",
    "select {r}.k as k, sum({r}.v) as n",
    "select {r}.k as k, count() as n group by {r}.k output last every 2 events",
    "select {r}.k as k, {r}.v + 1 as v having v > 0 order by k limit 5",
    "select {r}.v as q output snapshot every 1 sec",
]
OUTPUTS = [
    "update or insert into U set U.v = {r}.v on U.k == {r}.k",
    "update U set v = {r}.v + U.v on {r}.k == U.k and {r}.v > 0",
    "update P set P.v = {r}.v on (P.k == U.k and U.v < {r}.v) in U",
    "update U set U.v = convert(eventTimestamp(), 'int') on U.k == {r}.k and not (U is null)",
    "delete U on U.k == {r}.k and {r}.v > 3",
    "delete P on true",
]


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("output", OUTPUTS)
def test_a_table_is_changed_by_whatever_the_checker_accepts(source, output):
    accepted = 0
    for select, r in itertools.product(SELECTS, SOURCES[source]):
        query = f"from {source} {select.format(r=r)} {output.format(r=r)};"
        try:
            running = engine(query, HEAD)
        except AppError:
            continue  # `select *` of two inputs with one name, a row that does not fit
        accepted += 1
        feed(running, EVENTS)
        assert running.take()
        assert running.kernel.stats.faults.keys() <= {"duplicate key"}
    assert accepted


@pytest.mark.parametrize("called", ["T.v", "v"])
def test_a_table_is_changed_with_values_of_the_input(called):
    query = f"from T update or insert into U set U.v = {called} on U.k == T.k;"
    assert [row[1:] for row in data(query, EVENTS, HEAD)] == [(9,), (2,), (8,)]


def test_a_table_is_changed_with_a_value_that_is_not_selected():
    query = "@info(name='q') from T select k update U set U.v = T.v on U.k == k;"
    running = engine(query, HEAD)
    feed(running, EVENTS)
    found = running.take()
    assert [e.data for e in found if e.stream == "@q"] == [("a",), ("c",), ("a",)]
    assert [e.data for e in found if e.stream == "O"] == [("a", 9), ("b", 2), ("c", 4)]


def test_a_condition_inside_a_condition_reads_both_tables():
    query = "from T delete U on (U.k == P.k and P.v == U.v and U.v < 2) in P;"
    assert data(query, EVENTS, HEAD) == [("b", 2), ("c", 4)]
