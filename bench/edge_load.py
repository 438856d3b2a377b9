"""The clients of bench/edge.py: raw sockets that count marks; no client library is measured.

A reader finds messages by their mark and ages by the digits behind it; what lies between is the
protocol's own overhead and is counted in bytes.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from bench.edge_peers import DIGITS, MARK, Peer, payload

CHUNK = 256 * 1024
SETTLE_S = 0.3
HANDSHAKES = 64  # at once
QUIET_S, DRAIN_S = 0.2, 15.0  # nothing for so long: done; but no longer than that
SATURATED = 0.8  # of what is due; below it a peer has shown what it can do


QUANTILES = (0.5, 0.99, 0.999, 0.9999, 1.0)


def now_us() -> int:
    return time.time_ns() // 1000


def cpu_s(pid: int) -> float:
    """Processor time a process has used; fair also when the machine is shared."""
    parts = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(parts[11]) + int(parts[12])) / os.sysconf("SC_CLK_TCK")


def quantile(values: list[float], q: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(q * len(ordered)))] if ordered else 0.0


def subscriber(peer: Peer) -> socket.socket:
    sock = peer.connect()
    for data in peer.subscribe:
        sock.sendall(data)
    return sock


class Pinger:
    """One client that publishes to its own subscription."""

    def __init__(self, peer: Peer, size: int) -> None:
        self._peer = peer
        self._size = size
        self._sock = subscriber(peer)
        self._sock.settimeout(5)
        time.sleep(SETTLE_S)
        if peer.subscribe:
            self._sock.recv(CHUNK)

    def run(self, rounds: int) -> list[float]:
        """Publish, wait until it comes back; microseconds each."""
        sock, size, out = self._sock, self._size, []
        for _ in range(rounds):
            message = self._peer.publish(payload(size))
            stamp = message[message.index(MARK) :][: len(MARK) + DIGITS]
            start = time.perf_counter_ns()
            sock.sendall(message)
            seen = sock.recv(CHUNK)
            while (at := seen.find(stamp)) < 0 or len(seen) - at < size:
                seen += sock.recv(CHUNK)
            out.append((time.perf_counter_ns() - start) / 1000)
        return out

    def close(self) -> None:
        self._sock.close()


class Clock:
    """No server: looks at the clock for as long as a round trip takes. Whatever took longer was
    the machine's, and no server on it can do better.
    """

    def __init__(self, trip_us: float) -> None:
        self._trip_ns = int(trip_us * 1000)

    def run(self, rounds: int) -> list[float]:
        out = []
        for _ in range(rounds):
            start = now = time.perf_counter_ns()
            while now - start < self._trip_ns:
                now = time.perf_counter_ns()
            out.append((now - start) / 1000)
        return out

    def close(self) -> None:
        pass


def wire_share(peer: Peer, size: int, messages: int) -> float:
    """The payload's share of what a subscriber receives while `messages` are published."""
    publisher, sock = peer.connect(), subscriber(peer)
    sock.settimeout(5)
    publisher.settimeout(5)
    time.sleep(SETTLE_S)
    sock.recv(CHUNK)
    total = 0
    for _ in range(messages):
        publisher.sendall(peer.publish(payload(size)))
        seen = b""
        while (at := seen.find(MARK)) < 0 or len(seen) - at < size:
            seen += sock.recv(CHUNK)
        total += len(seen)
    sock.close()
    publisher.close()
    return messages * size / total


_buffer = bytearray(CHUNK)  # of all clients, one after another
_room = memoryview(_buffer)


@dataclass
class Client:
    """Looks only where a mark can be: clients must not be what limits a server."""

    sock: socket.socket
    payload: int = len(MARK)  # bytes from one mark on in which there is no other
    messages: int = 0
    size: int = 0
    lost: bool = False
    ages: list[float] = field(default_factory=list)
    _tail: bytes = b""  # perhaps the first bytes of a mark
    _skip: int = 0  # bytes to come of a message that was counted

    def read(self) -> None:
        start = len(self._tail)
        _buffer[:start] = self._tail
        try:
            end = start + self.sock.recv_into(_room[start:])
        except BlockingIOError:
            return
        except ConnectionResetError:
            end = start
        if end == start:
            self.lost = True
            return
        self.size += end - start
        last, after = -1, self._skip
        at = _buffer.find(MARK, after, end)
        while at >= 0:
            self.messages += 1
            last, after = at, at + self.payload
            at = _buffer.find(MARK, after, end)
        digits = _buffer[last + len(MARK) : min(end, last + len(MARK) + DIGITS)]
        if last >= 0 and len(digits) == DIGITS:
            self.ages.append((now_us() - int(digits)) / 1000)
        self._skip = max(0, after - end)
        self._tail = bytes(_buffer[max(after, end - len(MARK) + 1) : end])


@dataclass(frozen=True)
class Step:
    """One step of the ramp."""

    clients: int
    expected_per_s: float
    delivered_per_s: float
    age_p50_ms: float
    age_p99_ms: float
    spread: float  # fastest client / slowest client
    lost: int
    payload_share: float
    cpu_us: float  # of the server, per delivered message

    @property
    def saturated(self) -> bool:
        return self.delivered_per_s < SATURATED * self.expected_per_s


class Crowd:
    """Subscribers that grow in number, and one publisher."""

    def __init__(self, peer: Peer) -> None:
        self.peer = peer
        self.clients: list[Client] = []
        self._selector = selectors.DefaultSelector()
        self._publisher = peer.connect()
        self._publisher.setblocking(False)
        self._rest = b""

    def grow(self, total: int) -> None:
        # Many at once: Mosquitto answers a handshake only after a tenth of a second.
        with ThreadPoolExecutor(HANDSHAKES) as threads:
            new = range(total - len(self.clients))
            socks = list(threads.map(lambda _: subscriber(self.peer), new))
        for sock in socks:
            sock.setblocking(False)
            client = Client(sock)
            self.clients.append(client)
            self._selector.register(sock, selectors.EVENT_READ, client)
        self._read(0.01)

    def run(self, per_s: int, size: int, seconds: float) -> Step:
        self._spin(SETTLE_S, 0, size)
        for client in self.clients:
            client.messages, client.size, client.ages, client.payload = 0, 0, [], size
        start, cpu = time.monotonic(), self._cpu_s()
        sent = self._spin(seconds, per_s, size)
        took, cpu = time.monotonic() - start, self._cpu_s() - cpu
        alive = [c for c in self.clients if not c.lost]
        counts = [c.messages for c in alive] or [0]
        ages = [a for c in alive for a in c.ages]
        total, wire = sum(counts), sum(c.size for c in alive)
        step = Step(
            len(self.clients),
            sent * len(self.clients) / took,
            total / took,
            quantile(ages, 0.5),
            quantile(ages, 0.99),
            max(counts) / max(1, min(counts)),
            len(self.clients) - len(alive),
            total * size / wire if wire else 0.0,
            cpu / max(1, total) * 1e6,
        )
        self._drain()
        return step

    def close(self) -> None:
        for client in self.clients:
            client.sock.close()
        self._publisher.close()

    def _drain(self) -> None:
        """What a server still has to send must not burden whoever is measured next."""
        end = time.monotonic() + DRAIN_S
        while (self._selector.select(QUIET_S) or self._rest) and time.monotonic() < end:
            self._read(0)
            self._publish()
            self._swallow()

    def _cpu_s(self) -> float:
        return sum(map(cpu_s, self.peer.pids))

    def _spin(self, seconds: float, per_s: int, size: int) -> int:
        start, sent = time.monotonic(), 0
        while (passed := time.monotonic() - start) < seconds:
            due = int(passed * per_s)
            for _ in range(due - sent):
                self._rest += self.peer.publish(payload(size))
            sent = max(sent, due)
            self._publish()
            self._read(0.002)
            self._swallow()
        return sent

    def _publish(self) -> None:
        """What a server does not take now is kept: half a frame would end the connection."""
        if self._rest:
            with contextlib.suppress(BlockingIOError):
                self._rest = self._rest[self._publisher.send(self._rest) :]

    def _swallow(self) -> None:
        with contextlib.suppress(BlockingIOError):
            self._publisher.recv(CHUNK)

    def _read(self, timeout_s: float) -> None:
        for key, _ in self._selector.select(timeout_s):
            client: Client = key.data
            client.read()
            if client.lost:
                self._selector.unregister(client.sock)


def thin_pipe(sock: socket.socket, bytes_per_s: int, seconds: float) -> tuple[list[float], int]:
    """Read at a fixed rate; ages in milliseconds of every message seen, and bytes read."""
    sock.setblocking(False)
    start, done = time.monotonic(), 0
    text = b""
    ages: list[float] = []
    while (passed := time.monotonic() - start) < seconds:
        room = int(passed * bytes_per_s) - done
        if room >= 1024:
            try:
                data = sock.recv(min(room, 4096))
            except BlockingIOError:
                data = b""
            done += len(data)
            text += data
            while (at := text.find(MARK)) >= 0 and len(text) >= at + len(MARK) + DIGITS:
                ages.append(
                    (now_us() - int(text[at + len(MARK) : at + len(MARK) + DIGITS])) / 1000
                )
                text = text[at + len(MARK) + DIGITS :]
        time.sleep(0.005)
    return ages, done
