"""Claim: MQTT ingest with QoS 1, durable before it is acknowledged, against a bare subscriber.

Same Mosquitto, same run. The messages wait in the broker, published while the subscriber was away,
so that the publisher does not limit what is measured. The peer acknowledges at once.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import paho.mqtt.client as paho
from paho.mqtt.enums import CallbackAPIVersion

from bench.ingest import WallClock
from edgewise.event.schema import Schema
from edgewise.gateway.connectors import Source, check_source, load_source_class
from edgewise.gateway.spec import SourceSpec
from edgewise.log.segment_writer import SegmentWriter

SCHEMA = Schema.of("readings", sensor="string", value="double")
PAYLOAD = b'{"sensor": "s-1234", "value": 21.5}'
WINDOW = 500  # messages of the publisher on their way
WAIT_S = 120.0
# Without these a broker holds 20 messages back for each acknowledgement, and drops at 1000.
BROKER = "allow_anonymous true\nmax_inflight_messages 1000\nmax_queued_messages 0\n"


def publisher(pipe: Connection) -> None:
    """Publishes as many messages as it is told, until it is told nothing."""
    while (order := pipe.recv()) is not None:
        port, count = order
        client = paho.Client(CallbackAPIVersion.VERSION2)
        client.max_inflight_messages_set(WINDOW)
        client.connect("127.0.0.1", port)
        client.loop_start()
        for _ in range(count):
            last = client.publish("readings", PAYLOAD, qos=1)
        last.wait_for_publish(WAIT_S)
        client.disconnect()
        client.loop_stop()
        pipe.send(count)


async def rate(count: int, arrived: Callable[[], int], began: float) -> float:
    """Messages per second until `arrived()` says that all are there."""
    while arrived() < count:
        if time.perf_counter() - began > WAIT_S:
            raise TimeoutError(f"{arrived()} of {count} messages after {WAIT_S:g} s")
        await asyncio.sleep(0.005)
    return count / (time.perf_counter() - began)


async def publish(pipe: Connection, port: int, count: int) -> None:
    pipe.send((port, count))
    await asyncio.to_thread(pipe.recv)


async def bare(pipe: Connection, port: int, count: int) -> float:
    got = 0

    def on_message(_client: Any, _data: Any, _message: Any) -> None:
        nonlocal got
        got += 1

    def connected() -> paho.Client:
        client = paho.Client(CallbackAPIVersion.VERSION2, "bare", clean_session=False)
        client.on_message = on_message
        client.connect("127.0.0.1", port)
        return client

    client = connected()
    client.subscribe("readings", 1)
    client.loop_start()
    await asyncio.sleep(0.5)
    client.disconnect()
    client.loop_stop()
    await publish(pipe, port, count)
    began = time.perf_counter()
    client = connected()
    client.loop_start()
    try:
        return await rate(count, lambda: got, began)
    finally:
        client.unsubscribe("readings")
        client.disconnect()
        client.loop_stop()


async def ours(pipe: Connection, port: int, count: int, directory: Path) -> float:
    writer = SegmentWriter.open(directory / "log", SCHEMA)
    options = {"url": f"mqtt://127.0.0.1:{port}", "topic": "readings"}
    spec = check_source(SourceSpec("readings", "mqtt", options))

    def source() -> Source:
        return load_source_class("mqtt")(spec, SCHEMA, writer, WallClock())

    first = source()
    await first.start()
    await first.stop()
    await publish(pipe, port, count)
    began = time.perf_counter()
    second = source()
    await second.start()
    try:
        return await rate(count, lambda: writer.head.offset, began)
    finally:
        await second.stop()
        writer.close()


async def run(pipe: Connection, port: int, count: int, directory: Path) -> None:
    peer = await bare(pipe, port, count)
    mine = await ours(pipe, port, count, directory)
    print(f"{'messages':>14} {'bare sub msg/s':>15} {'edgewise msg/s':>15} {'ratio':>7}")
    print(f"{count:>14} {peer:>15,.0f} {mine:>15,.0f} {mine / peer:>7.3f}")


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer messages")
    given = parser.parse_args(argv)
    program = shutil.which("mosquitto", path="/usr/sbin:/usr/bin:/usr/local/sbin:/usr/local/bin")
    if program is None:
        print("no mosquitto here; install it with: sudo apt-get install -y mosquitto")
        return 2
    here, there = multiprocessing.Pipe()
    with tempfile.TemporaryDirectory() as name, socket.create_server(("127.0.0.1", 0)) as probe:
        directory, port = Path(name), probe.getsockname()[1]
        probe.close()
        config = directory / "mosquitto.conf"
        config.write_text(f"listener {port} 127.0.0.1\n{BROKER}")
        silent = subprocess.DEVNULL
        with subprocess.Popen([program, "-c", config], stdout=silent, stderr=silent) as broker:
            process = multiprocessing.get_context("spawn").Process(target=publisher, args=(there,))
            process.start()
            try:
                wait_for(port)
                asyncio.run(run(here, port, 5_000 if given.quick else 50_000, directory))
            finally:
                here.send(None)
                process.join(WAIT_S)
                broker.terminate()
    return 0


def wait_for(port: int) -> None:
    for _ in range(200):
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise TimeoutError("the broker did not start")


if __name__ == "__main__":
    sys.exit(main())
