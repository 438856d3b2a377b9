"""Which queries go as whole runs; that their rows are the same is in test_feeders."""

import pytest
from tests.kernel.codegen.test_fragment_source import source_of
from tests.support.kernel_runs import STREAMS

HEAD = STREAMS.replace("v int)", "v int, t long)")


def test_sums_of_whole_numbers_go_at_once():
    query = "from A#window.length(9) select k, avg(v) as a group by k "
    assert "vec.Slide" in source_of(f"{HEAD}{query}insert into O;")


@pytest.mark.parametrize(
    "query",
    [
        "from A#window.length(9) select k, max(v) as a group by k ",
        "from A#window.length(9) select k, avg(v) as a group by k having a > 1.0 ",
        "from A#window.length(9) select sum(v) as a ",
    ],
)
def test_what_looks_at_single_rows_does_not(query):
    assert "vec.Slide" not in source_of(f"{HEAD}{query}insert into O;")
