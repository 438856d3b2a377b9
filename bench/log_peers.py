"""The log beside Kafka and NATS JetStream: `python -m bench.log_peers [--quick]`.

One producer, then one consumer, the same bytes, on this machine. The peers carry the batch once as
one message (what the machine can do) and once as one message an event (how they are mostly used).
What an acknowledgement is worth differs: ours and those marked `fsync` are on the disk, the others
answer from memory and sync later. Medians of rounds that alternate.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
import itertools
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from bench.log import SCHEMA, batch_of
from edgewise.log.segment_reader import SegmentReader
from edgewise.log.segment_writer import SegmentWriter

BATCH_EVENTS = 4096
START_S_MAX = 30
ROUNDS = 3
CASES = ((True, True), (True, False), (False, False))  # whole batches, fsync
FORMS = {True: "a message a batch", False: "a message an event"}
Rates = tuple[float, float]  # events/s in, events/s out

_numbers = itertools.count()


class Load:
    """`batches` times the same bytes: one Arrow batch, or as many events of equal size."""

    def __init__(self, batches: int) -> None:
        self.batches = batches
        self.rows = batch_of(BATCH_EVENTS)
        self.body = self.rows.serialize().to_pybytes()
        self.event = self.body[: len(self.body) // BATCH_EVENTS]
        self.events = batches * BATCH_EVENTS

    def messages(self, whole: bool) -> Iterator[bytes]:
        if whole:
            yield from (self.body for _ in range(self.batches))
        else:
            yield from (self.event for _ in range(self.events))

    def count(self, whole: bool) -> int:
        return self.batches if whole else self.events


def rates(load: Load, produce: Callable[[], None], consume: Callable[[], None]) -> Rates:
    start = time.perf_counter()
    produce()
    middle = time.perf_counter()
    consume()
    return load.events / (middle - start), load.events / (time.perf_counter() - middle)


def ours(directory: Path, load: Load) -> Rates:
    shutil.rmtree(directory / "ours", ignore_errors=True)
    writer = SegmentWriter.open(directory / "ours", SCHEMA)

    def produce() -> None:
        for _ in range(load.batches):
            writer.append(load.rows)

    def consume() -> None:
        reader = SegmentReader.open(directory / "ours")
        assert sum(b.rows.num_rows for b in reader.read(0, load.events)) == load.events

    result = rates(load, produce, consume)
    writer.close()
    return result


def kafka(address: str, load: Load, *, whole: bool, fsync: bool) -> Rates:
    client, admin = (
        importlib.import_module(m) for m in ("confluent_kafka", "confluent_kafka.admin")
    )
    topic = f"bench-{next(_numbers)}"
    config = {"max.message.bytes": "8000000", **({"flush.messages": "1"} if fsync else {})}
    client_of_admin = admin.AdminClient({"bootstrap.servers": address})
    new = admin.NewTopic(topic, num_partitions=1, config=config)
    client_of_admin.create_topics([new])[topic].result()
    settings = {
        "bootstrap.servers": address,
        "acks": "all",
        "batch.size": len(load.body) + 1000,
        "linger.ms": 0 if whole else 5,
        "message.max.bytes": 8_000_000,
        "queue.buffering.max.messages": 200_000,
    }
    producer = client.Producer(settings)
    failed: list[Any] = []

    def delivered(error: Any, _: Any) -> None:
        if error:
            failed.append(error)

    def produce() -> None:
        for body in load.messages(whole):
            while True:
                try:
                    producer.produce(topic, body, on_delivery=delivered)
                    break
                except BufferError:
                    producer.poll(0.01)
            if whole:
                producer.flush()  # as our append: one batch is durable before the next
            else:
                producer.poll(0)
        producer.flush()
        assert not failed, failed[0]

    def consume() -> None:
        consumer = client.Consumer(
            {"bootstrap.servers": address, "group.id": topic, "auto.offset.reset": "earliest"}
        )
        consumer.assign([client.TopicPartition(topic, 0, 0)])
        left = load.count(whole)
        while left:
            left -= len(consumer.consume(min(left, 10_000), 0.2))
        consumer.close()

    return rates(load, produce, consume)


async def jetstream(port: int, load: Load, *, whole: bool) -> Rates:
    nats = importlib.import_module("nats")
    api = importlib.import_module("nats.js.api")
    connection = await nats.connect(f"nats://127.0.0.1:{port}")
    stream = connection.jetstream(publish_async_max_pending=4096)
    name = f"bench-{next(_numbers)}"
    await stream.add_stream(name=name, subjects=[name], storage=api.StorageType.FILE)
    start = time.perf_counter()
    for body in load.messages(whole):
        if whole:
            await stream.publish(name, body)
        else:
            await stream.publish_async(name, body)
    if not whole:
        await stream.publish_async_completed()
    middle = time.perf_counter()
    left = load.count(whole)
    done = asyncio.Event()

    async def seen(_: Any) -> None:
        nonlocal left
        left -= 1
        if not left:
            done.set()

    await stream.subscribe(name, cb=seen, ordered_consumer=True)
    await asyncio.wait_for(done.wait(), 300)
    end = time.perf_counter()
    await connection.close()
    return load.events / (middle - start), load.events / (end - middle)


def jetstream_rates(port: int, load: Load, whole: bool) -> Rates:
    return asyncio.run(jetstream(port, load, whole=whole))


@contextmanager
def nats_server(directory: Path, *, fsync: bool) -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    config = directory / "nats.conf"
    config.write_text(
        f'listen: "127.0.0.1:{port}"\nmax_payload: 8000000\nmax_pending: 64000000\n'
        f'jetstream {{ store_dir: "{directory / f"nats-{fsync}"}"'
        f"{', sync_interval: always' if fsync else ''} }}\n"
    )
    server = subprocess.Popen(
        [str(Path(sys.executable).with_name("nats-server")), "-c", str(config)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        deadline = time.monotonic() + START_S_MAX
        while time.monotonic() < deadline:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                time.sleep(0.05)
        yield port
    finally:
        server.terminate()
        server.wait()


def compare(name: str, load: Load, directory: Path, peer: Callable[[], Rates]) -> None:
    """Rounds alternate, so that a machine that gets slower gets slower for both."""
    rounds = [(ours(directory, load), peer()) for _ in range(ROUNDS)]
    mine, other = (
        tuple(statistics.median(r[side][way] for r in rounds) for way in (0, 1)) for side in (0, 1)
    )
    print(
        f"{name:44} {mine[0] / 1e6:6.2f} {other[0] / 1e6:6.2f} {mine[0] / other[0]:6.1f}x"
        f"   {mine[1] / 1e6:7.2f} {other[1] / 1e6:6.2f} {mine[1] / other[1]:6.1f}x",
        flush=True,
    )


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.log_peers", description=__doc__)
    parser.add_argument("--quick", action="store_true")
    args = parser.parse_args(argv)
    load = Load(25 if args.quick else 200)
    print(f"{load.events} events of {len(load.event)} B, {BATCH_EVENTS} a batch; M events/s")
    directory = Path(tempfile.mkdtemp(prefix="edgewise-peers-"))
    print(f"{'':44} in: ours theirs ratio   out: ours theirs ratio")
    broker_class: Any = importlib.import_module("tests.support.kafka_broker").KafkaBroker
    try:
        broker = broker_class(directory).start()
        try:
            for whole, fsync in CASES:
                name = f"Kafka acks=all{', fsync' if fsync else ''}, {FORMS[whole]}"
                peer = partial(kafka, broker.address, load, whole=whole, fsync=fsync)
                compare(name, load, directory, peer)
        finally:
            broker.stop()
        for whole, fsync in CASES:
            name = f"NATS JetStream{', fsync' if fsync else ''}, {FORMS[whole]}"
            with nats_server(directory, fsync=fsync) as port:
                compare(name, load, directory, partial(jetstream_rates, port, load, whole))
    finally:
        shutil.rmtree(directory)
    return 0


if __name__ == "__main__":
    sys.exit(main())
