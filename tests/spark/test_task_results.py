"""From a task everything comes as it was, or ready for its log."""

import pickle

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from tests.engines.batch.test_outputs import SCHEMAS, emit, row, rows_of

from edgewise.engines.batch.outputs import append_outputs
from edgewise.event.arrow import to_arrow
from edgewise.event.event import EventKind
from edgewise.log.segment_reader import SegmentReader
from edgewise.log.segment_writer import SegmentWriter
from edgewise.spark import task_results
from edgewise.spark.task_results import EncodingTarget, decode_results, encode_output

LOG = to_arrow(SCHEMAS["O"])


def travelled(*made, **how):
    return decode_results(
        pickle.loads(pickle.dumps([p for one in made for p in encode_output(one, **how)]))
    )


def test_results_are_decoded_as_they_were_encoded(monkeypatch):
    monkeypatch.setattr(task_results, "ROWS_MAX", 2)
    rows = [row("O", (1, 1, n, 0), (f"k{n}", n)) for n in range(5)]
    sent = emit(
        *rows, row("P", (1, 0, 2, 0), (None,), EventKind.EXPIRED), keys=7, counts={"a": {"b": 1}}
    )
    got = travelled(sent, emit())
    assert rows_of(got) == rows_of(sent)
    assert (got.keys, got.counts) == (7, {"a": {"b": 1}})


def test_a_large_result_is_a_file_that_decoding_removes(tmp_path, monkeypatch):
    monkeypatch.setattr(task_results, "BYTES_MAX", 100)
    sent = emit(*(row("O", (1, 1, n, 0), (f"k{n}", n)) for n in range(50)))
    packed = list(encode_output(sent, str(tmp_path / "7-1")))
    assert packed[0].data == b""
    assert [p.name for p in tmp_path.iterdir()] == ["7-1-0"]
    got = decode_results(packed)
    assert not list(tmp_path.iterdir())
    assert rows_of(got) == rows_of(sent)


@given(
    shares=st.lists(st.lists(st.integers(0, 99), max_size=9), min_size=1, max_size=4),
    rows_max=st.integers(1, 4),
    large=st.booleans(),
)
def test_frames_encoded_by_tasks_hold_the_rows_the_driver_would_append(
    tmp_path_factory, shares, rows_max, large
):
    place = tmp_path_factory.mktemp("log")
    tasks = [emit(*(row("O", (1, 1, n, 0), ("k", n)) for n in some)) for some in shares]
    targets = {"O": EncodingTarget(LOG, rows_max)}
    sort_and_strip = [task.sort_and_strip() for task in tasks]
    limit, task_results.BYTES_MAX = task_results.BYTES_MAX, 0 if large else task_results.BYTES_MAX
    try:
        got = decode_results(
            p
            for at, one in enumerate(sort_and_strip)
            for p in encode_output(one, f"{place}/0-{at}", targets)
        )
    finally:
        task_results.BYTES_MAX = limit
    kept = {}
    for name, found in (("parts", got.encoded), ("rows", dict(joined(sort_and_strip)))):
        with_log = SegmentWriter.open(place / name, SCHEMAS["O"])
        out = {stream: [some] for stream, some in found.items()}
        assert append_outputs({"O": with_log}, out, "spark:1", 0) == sum(map(len, shares))
        assert append_outputs({"O": with_log}, out, "spark:1", 0) == sum(map(len, shares))
        with_log.close()
        reader = SegmentReader.open(place / name)
        batches = reader.read(0, reader.head().offset)
        kept[name] = [r for batch in batches for r in batch.rows.to_pylist()]
        reader.close()
    assert kept["parts"] == kept["rows"]
    assert not got.rows


def joined(sort_and_strip):
    tables = [table for one in sort_and_strip for _, table in one.iterate_sorted()]
    if tables:
        yield "O", pa.concat_tables(tables)
