"""Every row somebody wants is fed to exactly one partition, in order."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engines.test_host import Job

from edgewise.engines.scan import spread, stretch, wanted
from edgewise.event.event import Kind
from edgewise.lang import compile_app
from edgewise.plan.rules.keys import split

TWO = """
define stream S (k string, v int); define stream T (k string, v int);
from every e1=S[v > 5] -> e2=T[k == e1.k and v < 3] within 1 sec select e1.v as a insert into O;
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
    [fragment] = split(app)
    return Job(app, fragment, 0, 0, "", ("S", "T"), **more)


def offsets(batches):
    return [o for b in batches for o in b.column(b.schema.get_field_index("_offset")).to_pylist()]


ROWS = st.lists(
    st.tuples(st.integers(0, 1), st.sampled_from(["a", "b", None, "c"]), st.integers(0, 9)),
    max_size=30,
)


@given(ROWS, st.integers(1, 5))
def test_what_is_wanted_goes_to_one_partition_by_its_key(rows, parts):
    work = job(TWO)
    chosen = wanted(table(rows), work)
    matter = [i for i, (stream, _, v) in enumerate(rows) if (v > 5 if stream == 0 else v < 3)]
    assert chosen.column("_offset").to_pylist() == matter
    shares = [offsets(batches) for batches in spread(chosen, work, parts)]
    assert sorted(o for share in shares for o in share) == matter
    assert all(share == sorted(share) for share in shares)
    homes = {}
    for part, share in enumerate(shares):
        for o in share:
            assert homes.setdefault(rows[o][1], part) == part


def test_only_what_is_read_is_taken_along():
    work = job(ONE, reads={"S": ("v",)})
    chosen = wanted(table([(0, "a", 7), (1, "a", 7), (0, "b", 1)]), work)
    assert chosen.column_names[-1] == "s0_v"
    assert "s0_k" not in chosen.column_names
    assert chosen.column("_offset").to_pylist() == [0]


@given(st.lists(st.booleans(), max_size=20), st.integers(1, 4))
def test_stretches_cover_the_rows_and_cut_no_chunk(more, parts):
    kinds = [int(Kind.MORE) if m else 0 for m in more]
    whole = pa.table(
        {"_kind": pa.array(kinds, pa.int8()), "_offset": pa.array(range(len(kinds)), pa.int64())}
    )
    pieces = [offsets(stretch(whole, parts, part)) for part in range(parts)]
    assert [o for piece in pieces for o in piece] == list(range(len(kinds)))
    for piece in pieces:
        if piece and piece[-1] < len(kinds) - 1:
            assert not more[piece[-1]]


@pytest.mark.parametrize("parts", [1, 3])
def test_no_rows_are_spread_too(parts):
    work = job(TWO)
    shares = list(spread(wanted(table([]), work), work, parts))
    assert len(shares) == parts
    assert [offsets(s) for s in shares] == [[]] * parts
