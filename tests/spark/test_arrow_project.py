"""Fragments without state over Arrow tables give the rows of their kernels."""

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgewise.engines.batch.inputs import InputLogs
from edgewise.engines.batch.job import Job
from edgewise.engines.batch.live_kernels import fingerprint_plan
from edgewise.engines.batch.run import run_key_partition
from edgewise.engines.batch.select_rows import select_rows
from edgewise.event.event import Event
from edgewise.lang import compile_app
from edgewise.node.commands.replay import load_logs
from edgewise.node.data_dir import DataDirectory
from edgewise.plan.rules.keys import split_into_fragments
from edgewise.spark.arrow_project import compile_projections, run_projections

HEAD = "define stream S (k string, a int, b long, x double, f float, ok bool);"
QUERIES = {
    "a filter": "from S[a > 0] select k, a insert into O;",
    "whole": "from S select k, b, x, f, ok insert into O;",
    "arithmetic": "from S[a + 1 > b] select a * 2 as n, b - a as m, x + x as y insert into O;",
    "booleans": "from S[not ok or x > 0.5] select k == 'p' as p, a is null as no insert into O;",
    "a chain": "from S[a > -5] select a + 1 as n, k insert into T; "
    "from T[n != 1 and k != 'q'] select n * n as n2 insert into O;",
    "constants": "from S[f >= 0.0] select 'x' as c, 7 as n, 2.5 as d insert into O;",
}
WHOLE = st.one_of(st.none(), st.integers(-3, 3), st.sampled_from([2**31 - 1, -(2**31)]))
FLOATS = st.one_of(st.none(), st.sampled_from([0.0, -1.5, 0.5, float("nan"), float("inf")]))
ROWS = st.lists(
    st.tuples(
        st.sampled_from(["p", "q", None]),
        WHOLE,
        WHOLE,
        FLOATS,
        FLOATS,
        st.sampled_from([True, False, None]),
    ),
    min_size=1,
    max_size=40,
)


def job_of(query, place):
    app = compile_app(f"{HEAD} {query}").app
    [fragment] = split_into_fragments(app)
    return Job(
        app, fragment, 0, 0, str(place), ("S",), fingerprint=fingerprint_plan(app, [fragment])
    )


@pytest.mark.parametrize("name", list(QUERIES))
@given(rows=ROWS)
def test_arrow_projections_give_the_rows_of_the_kernel(name, rows):
    with TemporaryDirectory() as place:
        layout = DataDirectory(Path(place))
        job = job_of(QUERIES[name], place)
        load_logs(job.app, [Event("S", 100 - at, row) for at, row in enumerate(rows)], layout)
        inputs = InputLogs({"S": str(layout.log_directory("S"))})
        start, end = inputs.earliest(), inputs.heads()
        queries = compile_projections(job)
        found = dict(run_projections(inputs, start, end, queries).iterate_sorted())
        table = inputs.read_table(start, end, inputs.clock_at(start))
        expected = dict(run_key_partition(job, 0, select_rows(table, job)).iterate_sorted())
        inputs.close()
    assert queries
    assert {s: repr(t.to_pylist()) for s, t in found.items()} == {
        s: repr(t.to_pylist()) for s, t in expected.items()
    }


@pytest.mark.parametrize(
    "query",
    [
        "from S select k insert into O; from S[a > 0] select k insert into O;",  # rows interleave
        "from S select a / 2 as n insert into O;",  # no word for it in Arrow
        "from S[b > x] select k insert into O;",
        "from S select k, count() as n insert into O;",
    ],
)
def test_other_fragments_are_not_compiled(tmp_path, query):
    assert compile_projections(job_of(query, tmp_path)) == []
