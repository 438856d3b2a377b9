from hypothesis import given
from hypothesis import strategies as st
from tests.support.kernel_runs import START, STREAMS, engine, feed

from edgewise.lang import compile_query

FILTERS = " ".join(
    f"@info(name='q{n}') from A[k == 'k{n % 5}' and v > {n % 3}] select v insert into O;"
    for n in range(12)
)
OTHER = "@info(name='r') from A[v > 1] select v insert into O;"


@given(st.lists(st.tuples(st.sampled_from(["k0", "k3", "k9", None]), st.integers(0, 4))))
def test_an_index_finds_what_asking_each_would_find_in_order(pairs):
    running = engine(FILTERS + OTHER)
    assert "_A_index" in running.kernel.source
    feed(running, [("A", START + i, k, v) for i, (k, v) in enumerate(pairs)])
    wanted = []
    for k, v in pairs:
        wanted += [f"@q{n}" for n in range(12) if k == f"k{n % 5}" and v > n % 3]
        wanted += ["@r"] if v > 1 else []
    assert [e.stream for e in running.take() if e.stream != "O"] == wanted


def test_few_filters_are_asked_one_by_one():
    assert "_index" not in engine("from A[k == 'x'] select v insert into O;").kernel.source


HEAD = "define stream A (k string, v int, p double, f float, n long); "
NUMBERS = st.sampled_from(["-1", "0", "2", "3"])
TERMS = st.one_of(
    st.tuples(st.sampled_from("vnp"), st.sampled_from([">", ">=", "<", "<=", "=="]), NUMBERS).map(
        " ".join
    ),
    st.tuples(st.sampled_from("fp"), st.sampled_from(["<", ">=", "=="])).map(
        lambda t: f"{t[0]} {t[1]} {'1.1f' if t[0] == 'f' else '1.1'}"
    ),
    st.sampled_from(["k == 'a'", "'b' == k", "k != 'a'", "2 > v", "v is null", "v < 2.5"]),
)
CONDITIONS = st.recursive(
    TERMS,
    lambda inner: st.tuples(inner, st.sampled_from([" and ", " or "]), inner).map(
        lambda t: f"({t[0]}{t[1]}{t[2]})"
    ),
    max_leaves=4,
)
ROWS = st.tuples(
    st.sampled_from(["a", "b", "c", None]),
    st.none() | st.integers(-2, 4),
    st.none() | st.sampled_from([-1.0, 1.1, 2.0, 2.5, float("nan")]),
    st.none() | st.sampled_from([1.1, 2.0]),
    st.none() | st.integers(-2, 4),
)


@given(st.lists(CONDITIONS, min_size=4, max_size=12), st.lists(ROWS, max_size=6))
def test_any_filters_give_the_rows_of_one_app_each(conditions, rows):
    def query(n, condition):
        return f"@info(name='q{n}') from A[{condition}] select v insert into O;"

    def asked(names):
        running = engine("".join(query(n, conditions[n]) for n in names), HEAD)
        for i, row in enumerate(rows):
            running.send("A", START + i, row)
            yield [e.stream for e in running.take() if e.stream != "O"]

    alone = zip(*(asked([n]) for n in range(len(conditions))), strict=True)
    assert list(asked(range(len(conditions)))) == [
        [s for one in row for s in one] for row in alone
    ]


def test_ranges_values_and_the_rest_share_one_index():
    ranges = " ".join(
        f"from A[v > {n} and v <= {n + 3}] select v insert into O;" for n in range(9)
    )
    values = " ".join(f"from A[k == 'k{n}' or k == 'x'] select v insert into O;" for n in range(9))
    window = "from A#window.length(2) select sum(v) as s insert into W;"
    text = engine(ranges + values + window).kernel.source
    assert "index.ByRange(1, (" in text
    assert "index.ByValue(0, (" in text
    assert "), [18])" in text


def test_partitions_and_aggregations_stand_beside_the_index():
    more = """partition with (k of A) begin from A select k, count() as n insert into P; end;"""
    kept = """define aggregation G from A select k, sum(v) as s group by k aggregate every sec;"""
    running = engine(FILTERS + more, STREAMS + kept)
    assert "_A_index" in running.kernel.source
    feed(running, [("A", START, "k0", 9), ("A", START + 1, "none", 9)])
    assert [e.data for e in running.take() if e.stream == "P"] == [("k0", 1), ("none", 1)]
    asked = compile_query("from G within 0L, 9999999L per 'seconds' select k, s", running.app)
    assert sorted(running.query(asked)) == [("k0", 9), ("none", 9)]


def test_the_attribute_that_tells_queries_apart_is_chosen():
    text = " ".join(
        f"from A[k == 'a' and v >= {n} and v < {n + 1}] select v insert into O;" for n in range(20)
    )
    assert "index.ByRange(1, (" in engine(text).kernel.source
