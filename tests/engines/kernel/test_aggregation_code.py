from tests.engines.kernel.apps import data, engine, feed

from edgewise.lang.compiler import compile_query

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
