import pytest
from tests.support.kernel_runs import data, engine, feed

from edgewise import eep
from edgewise.errors import AppError
from edgewise.lang.compiler import compile_app, compile_query
from edgewise.lang.fluent import App
from edgewise.plan.declare import aggregate

HEAD = (
    "define stream S (k string, v int, t long); define stream Q (k string); "
    "define aggregation G from S[v > 0] select k, sum(v) as s, avg(v) as a, count() as n, "
    "min(v) as lo, max(v) as hi, v as last group by k aggregate by t every sec...hour; "
)
EVENTS = [("S", 1000, "x", 4, 5_000), ("S", 1001, "x", 3, 5_900), ("S", 1002, "y", 9, 65_000),
          ("S", 1003, "x", 0, 5_000)]  # fmt: skip
JOIN = (
    "from Q join G on Q.k == G.k within 0L, 100000L per 'seconds' "
    "select AGG_TIMESTAMP as at, G.s as s, a, n, lo, hi, last insert into O;"
)


def test_a_join_reads_the_buckets_of_a_span():
    assert data(JOIN, [*EVENTS, ("Q", 1004, "x")], HEAD) == [(5000, 7, 3.0, 2, 3, 4, 3)]


def test_a_question_reads_coarser_buckets():
    running = engine(JOIN, HEAD)
    feed(running, EVENTS)
    query = "from G within 0L, 100000L per 'minutes' select AGG_TIMESTAMP as at, k, s"
    found = running.query(compile_query(query, running.app))
    assert found == [(0, "x", 7), (60_000, "y", 9)]


def test_an_aggregation_keeps_every_aggregate_of_the_language_and_ones_own():
    @aggregate("newest", "number", returns="same")
    class Newest(eep.Last):
        pass

    text = (
        "define stream S (k string, v int); define stream Q (k string); "
        "define aggregation G from S select k, stdDev(v) as d, minForever(v) as m, "
        "or(v > 3) as b, newest(v) as n group by k aggregate every sec; "
        "from Q join G on Q.k == G.k within 0L, 100000L per 'seconds' "
        "select d, m, b, n insert into O;"
    )
    app = App(text, functions=[Newest])
    app.send("S", [("x", 2), ("x", 4)])
    assert app.send("Q", ("x",)).data() == [(1.0, 2, True, 4)]


def test_an_expression_of_aggregates_is_refused_with_its_place():
    text = (
        "define stream S (v int); "
        "define aggregation G from S select sum(v) + 1 as s aggregate every sec;"
    )
    with pytest.raises(AppError, match="1:61: error: an aggregation keeps single aggregates"):
        compile_app(text)
