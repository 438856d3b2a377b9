"""Which queries go as whole runs; that their rows are the same is in test_feeders."""

import pytest
from tests.kernel.codegen.test_fragment_source import source_of
from tests.support.kernel_runs import STREAMS

HEAD = STREAMS.replace("v int)", "v int, t long)")


def test_sums_of_whole_numbers_go_at_once():
    query = "from A#window.externalTimeBatch(t, 1 sec) select k, sum(v) as s group by k "
    assert "vec.first_from" in source_of(f"{HEAD}{query}insert into O;")


@pytest.mark.parametrize(
    "query",
    [
        "from A#window.externalTimeBatch(t, 1 sec) select k, max(v) as s group by k ",
        "from A#window.externalTimeBatch(t, 1 sec) select k, sum(v) as s group by k order by s ",
        "from A[v > 1]#window.externalTimeBatch(t, 1 sec) select k, sum(v) as s group by k ",
    ],
)
def test_what_looks_at_single_rows_does_not(query):
    assert "vec.first_from" not in source_of(f"{HEAD}{query}insert into O;")
