"""Build jobs and record batches as an engine gives them to a kernel's host."""

from edgewise.engines.batch.job import Job
from edgewise.engines.batch.live_kernels import fingerprint_plan
from edgewise.lang import compile_app
from edgewise.plan.functions import FUNCTIONS
from edgewise.plan.rules.keys import split_into_fragments

COUNTS = "define stream S (k string); from S select k, count() as n group by k insert into O;"


def build_job(version, root, text=COUNTS, **functions):
    app = compile_app(text, functions=FUNCTIONS.with_(*functions.values())).app
    [fragment] = split_into_fragments(app)
    plan = fingerprint_plan(app, [fragment])
    return Job(app, fragment, version, version, str(root), ("S",), fingerprint=plan)


def build_batch(*keys, first, kinds=None):
    import pyarrow as pa

    size = len(keys)
    return pa.RecordBatch.from_pydict(
        {
            "_ts": [first] * size,
            "_at": [1] * size,
            "_offset": list(range(first, first + size)),
            "_clock": [first] * size,
            "_kind": pa.array(kinds or [0] * size, pa.int8()),
            "_stream": pa.array([0] * size, pa.int32()),
            "s0_k": list(keys),
        }
    )


def list_rows(output):
    return {stream: rows.to_pylist() for stream, rows in output.iterate_sorted()}
