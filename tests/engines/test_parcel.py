"""From a task everything comes as it was, or ready for its log."""

import pickle

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from tests.engines.test_results import SCHEMAS, made, row, rows_of

from edgewise.engines import parcel
from edgewise.engines.parcel import Home, pack, unpack
from edgewise.engines.results import append
from edgewise.event.arrow import to_arrow
from edgewise.event.event import Kind
from edgewise.log.segment import SegmentReader, SegmentWriter

LOG = to_arrow(SCHEMAS["O"])


def travelled(*made, **how):
    return unpack(pickle.loads(pickle.dumps([p for one in made for p in pack(one, **how)])))


def test_from_a_task_everything_comes_as_it_was(monkeypatch):
    monkeypatch.setattr(parcel, "ROWS_MAX", 2)
    rows = [row("O", (1, 1, n, 0), (f"k{n}", n)) for n in range(5)]
    sent = made(
        *rows, row("P", (1, 0, 2, 0), (None,), Kind.EXPIRED), keys=7, counts={"a": {"b": 1}}
    )
    got = travelled(sent, made())
    assert rows_of(got) == rows_of(sent)
    assert (got.keys, got.counts) == (7, {"a": {"b": 1}})


def test_what_is_large_travels_as_a_file_that_is_gone_afterwards(tmp_path, monkeypatch):
    monkeypatch.setattr(parcel, "BYTES_MAX", 100)
    sent = made(*(row("O", (1, 1, n, 0), (f"k{n}", n)) for n in range(50)))
    packed = list(pack(sent, str(tmp_path / "7-1")))
    assert packed[0].data == b""
    assert [p.name for p in tmp_path.iterdir()] == ["7-1-0"]
    got = unpack(packed)
    assert not list(tmp_path.iterdir())
    assert rows_of(got) == rows_of(sent)


@given(
    shares=st.lists(st.lists(st.integers(0, 99), max_size=9), min_size=1, max_size=4),
    rows_max=st.integers(1, 4),
    large=st.booleans(),
)
def test_parts_made_by_tasks_are_the_rows_the_driver_would_have_appended(
    tmp_path_factory, shares, rows_max, large
):
    place = tmp_path_factory.mktemp("log")
    tasks = [made(*(row("O", (1, 1, n, 0), ("k", n)) for n in some)) for some in shares]
    homes = {"O": Home(LOG, rows_max)}
    settled = [task.settled() for task in tasks]
    limit, parcel.BYTES_MAX = parcel.BYTES_MAX, 0 if large else parcel.BYTES_MAX
    try:
        got = unpack(
            p for at, one in enumerate(settled) for p in pack(one, f"{place}/0-{at}", homes)
        )
    finally:
        parcel.BYTES_MAX = limit
    kept = {}
    for name, found in (("parts", got.parts), ("rows", dict(joined(settled)))):
        with_log = SegmentWriter.open(place / name, SCHEMAS["O"])
        out = {stream: [some] for stream, some in found.items()}
        assert append({"O": with_log}, out, "spark:1", 0) == sum(map(len, shares))
        assert append({"O": with_log}, out, "spark:1", 0) == sum(map(len, shares))
        with_log.close()
        reader = SegmentReader.open(place / name)
        batches = reader.read(0, reader.head().offset)
        kept[name] = [r for batch in batches for r in batch.rows.to_pylist()]
        reader.close()
    assert kept["parts"] == kept["rows"]
    assert not got.rows


def joined(settled):
    tables = [table for one in settled for _, table in one.ordered()]
    if tables:
        yield "O", pa.concat_tables(tables)
