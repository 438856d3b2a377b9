from hypothesis import given
from hypothesis import strategies as st
from tests.engines.kernel.apps import START, engine, feed

FILTERS = " ".join(
    f"@info(name='q{n}') from A[k == 'k{n % 5}' and v > {n % 3}] select v insert into O;"
    for n in range(12)
)
OTHER = "@info(name='r') from A[v > 1] select v insert into O;"


@given(st.lists(st.tuples(st.sampled_from(["k0", "k3", "k9", None]), st.integers(0, 4))))
def test_an_index_finds_what_asking_each_would_find_in_order(pairs):
    running = engine(FILTERS + OTHER)
    assert "s_A_index" in running.kernel.source
    feed(running, [("A", START + i, k, v) for i, (k, v) in enumerate(pairs)])
    wanted = []
    for k, v in pairs:
        wanted += [f"@q{n}" for n in range(12) if k == f"k{n % 5}" and v > n % 3]
        wanted += ["@r"] if v > 1 else []
    assert [e.stream for e in running.take() if e.stream != "O"] == wanted


def test_few_filters_are_asked_one_by_one():
    assert "_index" not in engine("from A[k == 'x'] select v insert into O;").kernel.source
