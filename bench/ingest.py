"""Claim: durable, checked HTTP ingest keeps a stated share of what HTTP itself can carry.

The peer is a bare ASGI endpoint that reads the body and throws it away: same uvicorn, same
client in a process of its own, same run. Ours parses, checks, appends to segment files and
answers only when the disk has it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pyarrow as pa
import uvloop

from edgewise.event.arrow import SYSTEM_COUNT, to_arrow
from edgewise.event.schema import Schema
from edgewise.gateway.http import IngestServer
from edgewise.log.segment_reader import SegmentReader
from edgewise.log.segment_writer import SegmentWriter

LOGIN = Schema.of("login_stream", ip="string", cityId="string", attempt="int", score="double")
CONNECTIONS = 64
NDJSON, ARROW = "application/x-ndjson", "application/vnd.apache.arrow.stream"
LOADS = ((NDJSON, 1), (NDJSON, 100), (NDJSON, 1000), (ARROW, 1000))  # and events in one request
START_S = 30.0


class WallClock:
    @staticmethod
    def now_us() -> int:
        return time.time_ns() // 1000


class BareDoor(IngestServer):
    """The same server and nothing behind it."""

    async def __call__(
        self,
        scope: dict[str, Any],
        receive: Callable[[], Awaitable[dict[str, Any]]],
        send: Callable[[dict[str, Any]], Awaitable[None]],
    ) -> None:
        del scope
        while (await receive()).get("more_body", False):
            pass
        headers = [(b"content-type", b"application/json"), (b"content-length", b"2")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b"{}"})


@dataclass(frozen=True, slots=True)
class Load:
    port: int
    kind: str
    batch: int
    seconds: float


def request_of(batch: int, kind: str = NDJSON) -> bytes:
    events = [
        {"ip": f"10.0.{i % 256}.{i % 200}", "cityId": f"c{i % 50}", "attempt": i, "score": i / 7}
        for i in range(batch)
    ]
    if kind == NDJSON:
        body = "\n".join(map(json.dumps, events)).encode()
    else:
        sink = pa.BufferOutputStream()
        rows = pa.RecordBatch.from_pylist(events, schema=attributes())
        with pa.ipc.new_stream(sink, rows.schema) as stream:
            stream.write_batch(rows)
        body = sink.getvalue().to_pybytes()
    head = (
        "POST /streams/login_stream HTTP/1.1\r\nHost: bench\r\n"
        f"Content-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def attributes() -> Any:
    """The columns that a sender fills in."""
    return pa.schema(list(to_arrow(LOGIN))[SYSTEM_COUNT:])


async def send_all(load: Load) -> tuple[int, float]:
    """Requests answered with 200, and the seconds they took."""
    request = request_of(load.batch, load.kind)
    began = time.perf_counter()
    until = began + load.seconds

    async def connection() -> int:
        reader, writer = await asyncio.open_connection("127.0.0.1", load.port)
        done = 0
        while time.perf_counter() < until:
            writer.write(request)
            head = await reader.readuntil(b"\r\n\r\n")
            if not head.startswith(b"HTTP/1.1 200"):
                raise RuntimeError(head.decode())
            length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
            await reader.readexactly(length)
            done += 1
        writer.close()
        return done

    done = await asyncio.gather(*(connection() for _ in range(CONNECTIONS)))
    return sum(done), time.perf_counter() - began


def client(pipe: Connection) -> None:
    """The load generator: a process that does what it is told until it is told nothing."""
    while (load := pipe.recv()) is not None:
        pipe.send(uvloop.run(send_all(load)))


async def measure(
    server: IngestServer, pipe: Connection, seconds: float, batch: int, kind: str = NDJSON
) -> float:
    """Events per second through a server."""
    port = await server.start()
    try:
        for length in (seconds / 4, seconds):  # the first is to warm up
            pipe.send(Load(port, kind, batch, length))
            requests, took = await asyncio.to_thread(pipe.recv)
    finally:
        await server.stop()
    return float(requests * batch / took)


async def run(pipe: Connection, seconds: float, directory: Path) -> bool:
    print(f"{'events/request':>21} {'bare ASGI ev/s':>15} {'edgewise ev/s':>15} {'ratio':>7}")
    whole = True
    for kind, batch in LOADS:
        bare = await measure(BareDoor({}, WallClock()), pipe, seconds, batch, kind)
        name = f"{batch} {'NDJSON' if kind == NDJSON else 'Arrow'}"
        place = directory / name
        writer = SegmentWriter.open(place, LOGIN)
        server = IngestServer({"login_stream": writer}, WallClock())
        ours = await measure(server, pipe, seconds, batch, kind)
        writer.close()
        reader = SegmentReader.open(place)
        whole &= reader.head().offset == server.stats.accepted_total
        reader.close()
        print(f"{name:>21} {bare:>15,.0f} {ours:>15,.0f} {ours / bare:>7.3f}")
    return whole


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one second for each figure")
    parser.add_argument("--seconds", type=float, default=5.0)
    given = parser.parse_args(argv)
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=client, args=(theirs,))
    process.start()
    try:
        with tempfile.TemporaryDirectory() as directory:
            seconds = 1.0 if given.quick else given.seconds
            whole = uvloop.run(run(ours, seconds, Path(directory)))
    finally:
        ours.send(None)
        process.join(START_S)
    print("every acknowledged event is in the log" if whole else "EVENTS ARE MISSING in the log")
    return 0 if whole else 1


if __name__ == "__main__":
    sys.exit(main())
