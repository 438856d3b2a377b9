"""What chains and sequences share: state by key, outside the partition it stands for."""

from tests.support.kernel_runs import START, engine, feed

PARTITIONED = (
    "partition with (k of A, k of B) begin from every e1=A {join} e2=B "
    "select e1.v as a, e2.v as b insert into O; end;"
)


def test_a_partition_that_a_query_stands_for_has_no_instances():
    for join in ("->", ","):
        running = engine(PARTITIONED.format(join=join))
        assert "_instance" not in running.kernel.source
        feed(running, [("A", START, "x", 1), ("A", START, None, 2), ("B", START, "x", 3)])
        assert [e.data for e in running.take() if e.stream == "O"] == [(1, 3)]


def test_a_query_that_looks_at_two_matches_is_not_one_of_them():
    running = engine(PARTITIONED.format(join="->").replace("insert", "having a > 0 insert"))
    assert "pat.Machine" in running.kernel.source
