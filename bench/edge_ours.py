"""Our own edge as a server of bench/edge.py: one process or several, and orders to the first."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import shutil
import tempfile
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from bench.edge_peers import TOPIC, Peer, payload, ws_frame
from edgewise.wire import codec, frames


def _serve_edge(pipe: Connection, conflate: str, directory: Path | None) -> None:
    import uvloop

    uvloop.run(_edge_main(pipe, conflate, directory))


def _serve_worker(pipe: Connection, directory: Path, port: int) -> None:
    import uvloop

    async def main() -> None:
        from edgewise.edge.server.gc_tuning import tune_collector
        from edgewise.edge.server.server import Edge
        from edgewise.edge.server.worker_sync import WorkerSync

        edge = Edge(_edge_config())
        sync = WorkerSync(edge)
        await sync.start(directory / "head.sock")
        await edge.start(port=port, share_port=True)
        tune_collector()
        pipe.send(port)
        await sync.ended.wait()
        await edge.stop()

    uvloop.run(main())


def _edge_config() -> Any:
    from edgewise.edge.config import EdgeConfig

    return EdgeConfig(
        queue_max=100_000,
        sessions_max=20_000,
        connections_max=20_000,
        address_connections_max=20_000,
        idle_ms=3_600_000,
    )


async def _edge_main(pipe: Connection, conflate: str, directory: Path | None) -> None:
    from bench.edge_turns import marks, time_turns
    from edgewise.edge.server.gc_tuning import tune_collector
    from edgewise.edge.server.server import Edge
    from edgewise.edge.server.worker_sync import PrimarySync
    from edgewise.edge.topics.tree import Policy
    from edgewise.wire.frames import TopicKind

    edge = Edge(_edge_config())
    taken: dict[str, list[tuple[int, int]]] = {}
    policy = Policy(kind=TopicKind.BLOB, conflate=conflate)
    edge.publish(TOPIC, b"-", offset=0, at_us=1, policy=policy)
    port = await edge.start(share_port=directory is not None)
    head = PrimarySync(edge)
    if directory is not None:
        await head.start(directory / "head.sock")
    tune_collector()
    pipe.send(port)
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    flood: list[asyncio.Task[None]] = []

    def told() -> None:
        try:
            order = pipe.recv()
        except EOFError:
            order = "stop"
        if order == "stop":
            stop.set()
        elif order == "stats":
            stats = edge.stats
            pipe.send((stats.conflated, stats.pending, _rss_kib(), stats.sessions))
        elif order == "time":
            taken.update(time_turns(taken))
        elif order == "times":
            pipe.send(marks(taken))
        else:
            flood.append(loop.create_task(_flood(edge, *order)))

    loop.add_reader(pipe.fileno(), told)
    await stop.wait()
    loop.remove_reader(pipe.fileno())
    for task in flood:
        task.cancel()
    await edge.stop()
    await head.stop()


async def _flood(edge: Any, total: int, per_s: int, topics: int, size: int) -> None:
    """`total` events over `topics` topics, evenly in time."""
    from edgewise.edge.topics.tree import Policy, Publication
    from edgewise.wire.frames import TopicKind

    policy = Policy(kind=TopicKind.BLOB)
    start, sent = time.monotonic(), 0
    while sent < total:
        due = min(total, int((time.monotonic() - start) * per_s))
        for i in range(sent, due):
            at = time.time_ns() // 1000
            edge.fanout.publish(
                Publication(f"flood/{i % topics}", payload(size), i, at, policy=policy), at
            )
        sent = max(sent, due)
        edge.flush_soon()
        await asyncio.sleep(0.002)


def _rss_kib() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") // 1024


def edge(conflate: str = "off", processes: int = 1) -> tuple[Peer, Connection]:
    """The first process answers orders over the connection."""
    context = multiprocessing.get_context("spawn")
    directory = Path(tempfile.mkdtemp(prefix="bench-edge-"))
    ours, theirs = context.Pipe()
    shared = directory if processes > 1 else None
    first = context.Process(target=_serve_edge, args=(theirs, conflate, shared), daemon=True)
    first.start()
    port = ours.recv()
    children = [first]
    for _ in range(1, processes):
        mine, yours = context.Pipe()
        sync = context.Process(target=_serve_worker, args=(yours, directory, port), daemon=True)
        sync.start()
        mine.recv()
        children.append(sync)

    def stop() -> None:
        ours.send("stop")
        for child in children:
            child.join(5)
            if child.is_alive():
                child.kill()
        shutil.rmtree(directory, ignore_errors=True)

    counter = iter(range(10, 1 << 60))

    def publish(data: bytes) -> bytes:
        frame = frames.Publish(next(counter), TOPIC, data)
        return ws_frame(codec.encode(frame))

    peer = Peer(
        "edgewise",
        port,
        "/ws",
        [ws_frame(codec.encode(frames.Subscribe(1, TOPIC)))],
        publish,
        stop=stop,
        pids=[child.pid or 0 for child in children],
        hello=[ws_frame(codec.encode(frames.Hello(1)))],
    )
    return peer, ours
