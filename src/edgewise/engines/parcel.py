"""Results on their way from a task to the driver: a few large values instead of many small ones.

Rows that are in order, of a stream whose log takes parts, are made ready for it here, by all tasks
at once: the driver has only to write them. Others travel as Arrow streams. Where task and driver
see the same files, what is large lies in one of them and only its name travels.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa

from edgewise.engines.results import Counts, Made, made_ready
from edgewise.log.api import Part

ROWS_MAX = 1_000_000  # of one value
BYTES_MAX = 1 << 20  # beyond, a file is the faster way
ABOUT = ""  # in the place of a stream's name: keys and counts


class Home(NamedTuple):
    """What a task must know of a log that takes parts."""

    schema: Any
    rows_max: int


class Parcel(NamedTuple):
    stream: str
    parts: bytes  # what the rows are cut into; empty: they are an Arrow stream
    data: bytes
    file: str  # that holds them instead of `data`


def pack(made: Made, file: str = "", homes: Mapping[str, Home] | None = None) -> Iterator[Parcel]:
    """`file` begins the names of files that the driver sees too. Streams with a home are settled
    (`Made.settled`).
    """
    for place, (stream, several) in enumerate(made.rows.items()):
        table = pa.concat_tables(several)
        name = f"{file}-{place}" if file and table.nbytes > BYTES_MAX else ""
        if homes and stream in homes:
            yield _ready(stream, table, homes[stream], name)
        elif name:
            with pa.OSFile(name, "wb") as target:
                _write(table, target)
            yield Parcel(stream, b"", b"", name)
        else:
            for start in range(0, table.num_rows, ROWS_MAX):
                sink = pa.BufferOutputStream()
                _write(table.slice(start, ROWS_MAX), sink)
                yield Parcel(stream, b"", sink.getvalue().to_pybytes(), "")
    yield Parcel(ABOUT, b"", msgspec.msgpack.encode((made.keys, made.counts)), "")


def _ready(stream: str, table: Any, home: Home, name: str) -> Parcel:
    sizes = []
    held = io.BytesIO()
    with pa.OSFile(name, "wb") if name else pa.PythonFile(held) as sink:
        for part in made_ready(table, home.schema, home.rows_max):
            sink.write(part.body)
            sizes.append((part.body.size, *part[1:]))
        data = held.getvalue()
    return Parcel(stream, msgspec.msgpack.encode(sizes), data, name)


def _write(table: Any, sink: Any) -> None:
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)


def unpack(parcels: Iterable[Parcel]) -> Made:
    """Files are gone afterwards; what was in them stays as long as it is used."""
    whole = Made()
    for stream, parts, data, file in parcels:
        if stream == ABOUT:
            keys, counts = msgspec.msgpack.decode(data, type=tuple[int, Counts])
            whole.add(Made({}, keys, counts))
            continue
        source = pa.memory_map(file).read_buffer() if file else pa.py_buffer(data)
        if parts:
            whole.add(Made(parts={stream: _cut(source, parts)}))
        else:
            whole.add(Made({stream: [pa.ipc.open_stream(source).read_all()]}))
        if file:
            Path(file).unlink()
    return whole


def _cut(source: Any, parts: bytes) -> list[Part]:
    found, at = [], 0
    sizes = msgspec.msgpack.decode(parts, type=list[tuple[int, int, int, int, int]])
    for size, crc, rows, ts_min, ts_max in sizes:
        found.append(Part(source.slice(at, size), crc, rows, ts_min, ts_max))
        at += size
    return found
