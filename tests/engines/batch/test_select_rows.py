"""Every row somebody wants is fed to exactly one partition, in order."""

import dataclasses
import itertools
import tempfile
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from edgewise.engines.batch import select_rows as scan
from edgewise.engines.batch.inputs import InputLogs
from edgewise.engines.batch.job import BatchRange, Job
from edgewise.engines.batch.live_kernels import fingerprint_plan
from edgewise.engines.batch.select_rows import divide_range, filter_rows, select_rows, split_rows
from edgewise.event.arrow import record_batch
from edgewise.event.event import EventKind
from edgewise.lang import compile_app
from edgewise.log.segment_writer import SegmentWriter
from edgewise.plan.fragments import Fragment
from edgewise.plan.rules.keys import split_into_fragments

TWO = """
define stream S (k string, v int); define stream T (k string, v int);
from every e1=S[v > 5] -> e2=T[k == e1.k and v < 3] within 1 sec select e1.v as a insert into O;
"""
APART = """
define stream S (k string, v int); define stream T (k string, v int);
from S[v > 5] select k insert into O; from T insert into P;
"""
ONE = "define stream S (k string, v int); from S[v > 5] select k insert into O;"


def table(rows):
    """Rows are (stream, key, value), kinds follow."""
    count = len(rows)
    own = [
        [(k if stream == index else None, v if stream == index else None) for stream, k, v in rows]
        for index in (0, 1)
    ]
    columns = {
        "_ts": pa.array([1] * count, pa.int64()),
        "_at": pa.array([1] * count, pa.int64()),
        "_kind": pa.array([0] * count, pa.int8()),
        "_offset": pa.array(range(count), pa.int64()),
        "_clock": pa.array([1] * count, pa.int64()),
        "_stream": pa.array([r[0] for r in rows], pa.int32()),
    }
    for index in (0, 1):
        columns[f"s{index}_k"] = pa.array([k for k, _ in own[index]], pa.string())
        columns[f"s{index}_v"] = pa.array([v for _, v in own[index]], pa.int32())
    return pa.table(columns)


def job(text, **more):
    app = compile_app(text).app
    fragment, *_ = split_into_fragments(app)
    return Job(
        app, fragment, 0, 0, "", ("S", "T"), fingerprint=fingerprint_plan(app, [fragment]), **more
    )


def offsets(batches):
    return [o for b in batches for o in b.column(b.schema.get_field_index("_offset")).to_pylist()]


ROWS = st.lists(
    st.tuples(st.integers(0, 1), st.sampled_from(["a", "b", None, "c"]), st.integers(0, 9)),
    max_size=30,
)


@pytest.fixture(autouse=True)
def ask(monkeypatch):
    monkeypatch.setattr(scan, "FILTER_ROWS_MIN", 0)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(ROWS)
def test_few_rows_are_filtered_by_stream_only(rows):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scan, "FILTER_ROWS_MIN", 1000)
        of_both = filter_rows(table(rows), job(TWO)).column("_offset").to_pylist()
        of_one = filter_rows(table(rows), job(APART)).column("_offset").to_pylist()
    assert of_both == list(range(len(rows)))
    assert of_one == [i for i, (stream, _, _) in enumerate(rows) if stream == 0]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(ROWS, st.integers(1, 5))
def test_every_row_that_a_query_can_use_goes_to_the_partition_of_its_key(rows, parts):
    work = job(TWO)
    chosen = filter_rows(table(rows), work)
    matter = [i for i, (stream, _, v) in enumerate(rows) if (v > 5 if stream == 0 else v < 3)]
    assert chosen.column("_offset").to_pylist() == matter
    shares = [offsets(batches) for batches in split_rows(table(rows), work, parts)]
    assert shares == [
        offsets(select_rows(table(rows), work, parts, part)) for part in range(parts)
    ]
    assert sorted(o for own in shares for o in own) == matter
    assert all(own == sorted(own) for own in shares)
    homes = {}
    for part, own in enumerate(shares):
        for o in own:
            assert homes.setdefault(rows[o][1], part) == part


def test_only_attributes_that_queries_read_are_selected():
    work = job(ONE, reads={"S": ("v",)})
    chosen = filter_rows(table([(0, "a", 7), (1, "a", 7), (0, "b", 1)]), work)
    assert chosen.column_names[-1] == "s0_v"
    assert "s0_k" not in chosen.column_names
    assert chosen.column("_offset").to_pylist() == [0]


@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.lists(st.booleans(), min_size=1, max_size=20), st.integers(1, 4))
def test_equal_ranges_cover_the_rows_and_split_no_chunk(more, parts):
    kinds = [int(EventKind.MORE) if m else 0 for m in more]
    count = len(kinds)
    schema = compile_app(ONE).app.inputs[0].schema
    with tempfile.TemporaryDirectory() as place, closing(InputLogs({"S": place})) as inputs:
        with closing(SegmentWriter.open(Path(place), schema)) as writer:
            places = list(range(count))
            columns = [["a"] * count, places]
            writer.append(record_batch(writer.schema, places, [1] * count, kinds, columns))
        cut = BatchRange(0, {"S": 0}, {"S": count}, 0, count)
        ends = [divide_range(inputs, cut, parts, part) for part in range(parts)]
    assert ends[0][0] == {"S": 0}
    assert ends[-1][1] == {"S": count}
    for (_, end), (start, _) in itertools.pairwise(ends):
        assert end == start
        assert end["S"] == count or not more[end["S"] - 1]


def test_a_fragment_that_reads_nothing_gets_no_rows():
    work = job(ONE)
    nobody = dataclasses.replace(work, fragment=Fragment("f", (), ()))
    assert filter_rows(table([(0, "a", 7)]), nobody).num_rows == 0


@pytest.mark.parametrize("parts", [1, 3])
def test_an_empty_table_is_split_into_empty_partitions(parts):
    work = job(TWO)
    shares = list(split_rows(table([]), work, parts))
    assert len(shares) == parts
    assert [offsets(s) for s in shares] == [[]] * parts
