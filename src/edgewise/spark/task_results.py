"""Send the output of a task to Spark's driver: a few large values instead of many small ones.

Tasks encode log frames, the driver only writes them: rows that are sorted, of a stream whose log
takes encoded batches, are compressed and checksummed by all tasks at once. Other rows travel as
Arrow streams. Where task and driver see the same files, a large value is written to a file and
only its name travels, because Spark copies values several times. Used by `tasks`.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa

from edgewise.engines.batch.outputs import Counts, FragmentOutput, encode_frames
from edgewise.log.api import EncodedBatch

ROWS_MAX = 1_000_000  # of one value
BYTES_MAX = 1 << 20  # of one value; a larger one goes through a file, if it can
STATISTICS = ""  # instead of a stream's name: keys and counts


class EncodingTarget(NamedTuple):
    """What a task must know of a log to encode rows for it."""

    schema: Any
    rows_max: int


class TaskResult(NamedTuple):
    """One value on its way to the driver."""

    stream: str
    frames: bytes  # sizes and headers of encoded batches; empty: the data is an Arrow stream
    data: bytes
    file: str  # that holds the data instead of `data`


def encode_output(
    output: FragmentOutput, file: str = "", targets: Mapping[str, EncodingTarget] | None = None
) -> Iterator[TaskResult]:
    """`file` begins the names of files that the driver sees too. The rows of `targets` are sorted
    (`FragmentOutput.sort_and_strip`).
    """
    for index, (stream, tables) in enumerate(output.rows.items()):
        table = pa.concat_tables(tables)
        name = f"{file}-{index}" if file and table.nbytes > BYTES_MAX else ""
        if targets and stream in targets:
            yield _encode_for_log(stream, table, targets[stream], name)
        elif name:
            with pa.OSFile(name, "wb") as target:
                _write_stream(table, target)
            yield TaskResult(stream, b"", b"", name)
        else:
            for start in range(0, table.num_rows, ROWS_MAX):
                sink = pa.BufferOutputStream()
                _write_stream(table.slice(start, ROWS_MAX), sink)
                yield TaskResult(stream, b"", sink.getvalue().to_pybytes(), "")
    statistics = msgspec.msgpack.encode((output.keys, output.counts))
    yield TaskResult(STATISTICS, b"", statistics, "")


def _encode_for_log(stream: str, table: Any, target: EncodingTarget, name: str) -> TaskResult:
    headers = []
    held = io.BytesIO()
    with pa.OSFile(name, "wb") if name else pa.PythonFile(held) as sink:
        for frame in encode_frames(table, target.schema, target.rows_max):
            sink.write(frame.body)
            headers.append((frame.body.size, *frame[1:]))
        data = held.getvalue()
    return TaskResult(stream, msgspec.msgpack.encode(headers), data, name)


def _write_stream(table: Any, sink: Any) -> None:
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)


def decode_results(results: Iterable[TaskResult]) -> FragmentOutput:
    """The output of all tasks. Files are removed; mapped data stays as long as it is used."""
    whole = FragmentOutput()
    for stream, frames, data, file in results:
        if stream == STATISTICS:
            keys, counts = msgspec.msgpack.decode(data, type=tuple[int, Counts])
            whole.add(FragmentOutput({}, keys, counts))
            continue
        source = pa.memory_map(file).read_buffer() if file else pa.py_buffer(data)
        if frames:
            whole.add(FragmentOutput(encoded={stream: _split_frames(source, frames)}))
        else:
            whole.add(FragmentOutput({stream: [pa.ipc.open_stream(source).read_all()]}))
        if file:
            Path(file).unlink()
    return whole


def _split_frames(source: Any, frames: bytes) -> list[EncodedBatch]:
    found, at = [], 0
    headers = msgspec.msgpack.decode(frames, type=list[tuple[int, int, int, int, int]])
    for size, crc, rows, ts_min, ts_max in headers:
        found.append(EncodedBatch(source.slice(at, size), crc, rows, ts_min, ts_max))
        at += size
    return found
