"""The servers of bench/edge.py, each in a process of its own, and how their clients speak.

A peer knows how to start, how a subscriber says hello, how a publisher publishes. Payloads are
text with a marker and the time they were sent, so that one reader counts messages and measures
ages on every protocol without decoding any.
"""

from __future__ import annotations

import base64
import functools
import importlib.util
import json
import multiprocessing
import os
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

MARK = b"MRKR"
DIGITS = 16
START_S = 20.0
TOPIC = "bench/topic"
FETCH = Path(__file__).parents[1] / "scripts" / "fetch-edge-peers"


def payload(size: int) -> bytes:
    stamp = MARK + str(time.time_ns() // 1000).zfill(DIGITS).encode()
    return stamp + b"x" * (size - len(stamp))


def ws_frame(data: bytes, opcode: int = 2) -> bytes:
    """A client's frame: masked, with a mask of zeros that changes nothing."""
    size = len(data)
    if size < 126:
        head = struct.pack("!BB", 0x80 | opcode, 0x80 | size)
    elif size < 65536:
        head = struct.pack("!BBH", 0x80 | opcode, 0xFE, size)
    else:
        head = struct.pack("!BBQ", 0x80 | opcode, 0xFF, size)
    return head + b"\0\0\0\0" + data


@dataclass
class Peer:
    """`subscribe` and `publish` give bytes to send after the WebSocket handshake."""

    name: str
    port: int
    path: str
    subscribe: list[bytes]
    publish: Callable[[bytes], bytes]
    subprotocol: str = ""
    stop: Callable[[], None] = lambda: None
    pids: list[int] = field(default_factory=list)
    hello: list[bytes] = field(default_factory=list)
    orders: Connection | None = None  # to our own server

    def connect(self, *, receive_bytes: int = 0) -> socket.socket:
        sock = socket.socket()
        if receive_bytes:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        sock.connect(("127.0.0.1", self.port))
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sub = f"Sec-WebSocket-Protocol: {self.subprotocol}\r\n" if self.subprotocol else ""
        key = base64.b64encode(b"0123456789abcdef").decode()
        sock.sendall(
            f"GET {self.path} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\nUpgrade: websocket\r\n"
            f"Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n"
            f"{sub}\r\n".encode()
        )
        head = b""
        while b"\r\n\r\n" not in head:
            part = sock.recv(4096)
            assert part, f"{self.name} refused: {head!r}"
            head += part
        assert b" 101 " in head.split(b"\r\n")[0], head
        for data in self.greeting():
            sock.sendall(data)
        return sock

    def greeting(self) -> list[bytes]:
        return self.hello


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


def wait_for(port: int) -> None:
    end = time.monotonic() + START_S
    while time.monotonic() < end:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise TimeoutError(f"nothing listens on port {port}")


# The bare echo, the limit of the machine


def _serve_echo(pipe: Connection) -> None:
    import uvloop

    picows: Any = importlib.import_module("picows")

    class Echo(picows.WSListener):  # type: ignore[misc]
        def on_ws_frame(self, transport: Any, frame: Any) -> None:
            if frame.msg_type == picows.WSMsgType.CLOSE:
                transport.disconnect()
            else:
                transport.send(frame.msg_type, frame.get_payload_as_bytes())

    async def serve() -> None:
        server: Any = await picows.ws_create_server(lambda _request: Echo(), "127.0.0.1", 0)
        pipe.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    uvloop.run(serve())


def echo() -> Peer | None:
    if importlib.util.find_spec("picows") is None:
        print("   peer missing: the bare echo; pip install picows", file=sys.stderr)
        return None
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    child = context.Process(target=_serve_echo, args=(theirs,), daemon=True)
    child.start()
    return Peer(
        "bare echo", ours.recv(), "/", [], ws_frame, stop=child.kill, pids=[child.pid or 0]
    )


# Centrifugo and Mosquitto


@functools.cache
def programs() -> tuple[str, str]:
    """Centrifugo and Mosquitto, fetched the first time; empty where one cannot be had."""
    done = subprocess.run([FETCH], stdout=subprocess.PIPE, text=True, check=True)
    first, second, *_ = [*done.stdout.splitlines(), "", ""]
    return first, second


def _spawn(command: list[str], port: int) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_for(port)
    return process


def centrifugo() -> Peer | None:
    program = programs()[0]
    if not program:
        return None
    port, folder = free_port(), tempfile.mkdtemp(prefix="bench-centrifugo-")
    config = Path(folder) / "config.json"
    config.write_text(
        json.dumps(
            {
                "address": "127.0.0.1",
                "port": port,
                "client_insecure": True,
                "allow_subscribe_for_client": True,
                "allow_publish_for_client": True,
                "allow_publish_for_subscriber": True,
                "client_channel_limit": 100,
                # These clients answer no pings; whoever is not measured now stays connected.
                "ping_interval": "1h",
                "pong_timeout": "30m",
            }
        )
    )
    process = _spawn([program, "-c", str(config)], port)
    counter = iter(range(10, 1 << 60))

    def say(**command: Any) -> bytes:
        return ws_frame(json.dumps({"id": next(counter), **command}).encode(), 1)

    def publish(data: bytes) -> bytes:
        return say(publish={"channel": "topic", "data": {"p": data.decode()}})

    return Peer(
        "centrifugo",
        port,
        "/connection/websocket",
        [say(subscribe={"channel": "topic"})],
        publish,
        stop=process.kill,
        pids=[process.pid],
        hello=[say(connect={})],
    )


def _mqtt(kind: int, body: bytes) -> bytes:
    size, length = len(body), b""
    while True:
        digit, size = size % 128, size // 128
        length += bytes([digit | (0x80 if size else 0)])
        if not size:
            return bytes([kind]) + length + body


def mosquitto() -> Peer | None:
    program = programs()[1]
    if not program:
        return None
    port, folder = free_port(), tempfile.mkdtemp(prefix="bench-mosquitto-")
    config = Path(folder) / "mosquitto.conf"
    # Some versions refuse to start with a WebSocket listener alone.
    config.write_text(
        f"listener {free_port()} 127.0.0.1\n"
        f"listener {port} 127.0.0.1\nprotocol websockets\nallow_anonymous true\n"
        "max_inflight_messages 0\npersistence false\nset_tcp_nodelay true\n"
    )
    process = _spawn([program, "-c", str(config)], port)
    name = b"\x00\x05topic"
    counter = iter(range(1 << 60))

    def connect() -> bytes:
        client = f"b{os.getpid()}-{next(counter)}".encode()
        body = b"\x00\x04MQTT\x04\x02\x00\x00" + struct.pack("!H", len(client)) + client
        return ws_frame(_mqtt(0x10, body))

    class Mosquitto(Peer):
        def greeting(self) -> list[bytes]:
            return [connect()]

    return Mosquitto(
        "mosquitto",
        port,
        "/mqtt",
        [ws_frame(_mqtt(0x82, b"\x00\x01" + name + b"\x00"))],
        lambda data: ws_frame(_mqtt(0x30, name + data)),
        subprotocol="mqtt",
        stop=process.kill,
        pids=[process.pid],
    )
