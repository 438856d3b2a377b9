"""A real edge's arrivals and writable moments, recorded, and played again under a virtual clock:
the queue sends again, frame by frame, what the real one sent.

`python -m tests.edge.test_traces` records anew. A line of a trace is

    TIME + PATH SIZE              a value of so many bytes came
    0 c SIZE                      an answer of so many bytes is to be sent too
    TIME b RATE                   the client declared a budget in bytes/s
    TIME w ROOM -> PATH*COUNT...  the socket could take bytes; this was sent, and stood for so many
"""

import asyncio
import random
import socket
from contextlib import contextmanager
from pathlib import Path

import pytest

from edgewise.edge.config import EdgeConfig
from edgewise.edge.server.server import Edge
from edgewise.edge.sessions.budget import Budget
from edgewise.edge.sessions.fanout import Fanout
from edgewise.edge.sessions.outbox import Outbox
from edgewise.edge.sessions.session import Session
from edgewise.edge.topics.tree import Policy, Publication, TopicTree
from edgewise.wire import codec, frames
from edgewise.wire.frames import TopicKind
from edgewise.wire.view import Update, View

TRACES = Path(__file__).parent / "traces"
BLOB = Policy(kind=TopicKind.BLOB)
BUDGETS = {"thin_link": 0, "declared_budget": 12_000}  # bytes/s
QUEUE_MAX, CONTROL_MAX, TOPICS_MAX = 1024, 256 * 1024, 100


def sent(view, data):
    """What a client makes of the frames of one write."""
    reported = [codec.decode_from_server(frame) for frame in data if frame[0]]  # 0: a dummy answer
    seen = [view.take(frame) for frame in reported]
    return [(e.path, e.meta.count) for e in seen if isinstance(e, Update)]


def written(updates):
    return " ".join(f"{path}*{count}" for path, count in updates)


class Played:
    """A trace through the pure parts alone; time is what the trace says."""

    def __init__(self):
        self.fanout = Fanout(TopicTree(TOPICS_MAX))
        self.outbox = Outbox(QUEUE_MAX, CONTROL_MAX, TOPICS_MAX)
        self.view = View()
        self.newest, self.admit = {}, 0

    def line(self, text):
        at, verb, *rest = text.split(" ")
        now_us = int(at)
        if verb == "+":
            path, size = rest
            self.admit += 1
            value = self.newest[path] = filler(self.admit, int(size))
            self.fanout.publish(Publication(path, value, self.admit, now_us, policy=BLOB), now_us)
            return ""
        if verb == "b":
            self.outbox.budget = Budget(int(rest[0]), 0, now_us) if int(rest[0]) else None
            self.fanout.subscribe(self.outbox, 1, ("#",))
            return ""
        if verb == "c":
            self.outbox.control.add(bytes(int(rest[0])))
            return ""
        return written(sent(self.view, self.outbox.take(int(rest[0]), now_us)))


def filler(number, size):
    return str(number).encode().ljust(size, b"x")


@pytest.mark.parametrize("name", BUDGETS)
def test_a_recorded_edge_played_again_sends_the_same(name):
    played = Played()
    lines = (TRACES / f"{name}.txt").read_text().splitlines()
    stood_for = 0
    for line in lines:
        asked, _, answer = line.partition(" ->")
        assert played.line(asked) == answer.strip(), asked
        stood_for += sum(int(word.rsplit("*", 1)[1]) for word in answer.split())
        assert played.outbox.scheduler.count() <= len(played.newest) + 1
    assert played.outbox.idle
    assert stood_for <= played.admit  # a first sight stands for the state, not for what led to it
    assert {path: played.view.value(path) for path in played.newest} == played.newest
    assert played.outbox.conflated > played.admit / 4  # else the trace shows nothing


@contextmanager
def watched(name, lines):
    """What the queues of an edge take in and give out, written down."""
    take, say, changed, pace = Outbox.take, Outbox.say, Fanout.changed, Session._retune_budget
    view = View()

    def taking(outbox, room, now_us):
        data = take(outbox, room, now_us)
        if data:
            lines.append(f"{now_us} w {room} -> {written(sent(view, data))}".rstrip())
        return data

    def saying(outbox, frame):
        lines.append(f"0 c {len(frame)}")
        say(outbox, frame)

    def pacing(session, now_us):
        lines.append(f"{now_us} b {BUDGETS[name]}")
        pace(session, now_us)

    def changing(fanout, topic, change, now_us):
        lines.append(f"{now_us} + {topic.path} {len(change.value)}")
        changed(fanout, topic, change, now_us)

    Outbox.take, Outbox.say, Fanout.changed, Session._retune_budget = (
        taking,
        saying,
        changing,
        pacing,
    )
    try:
        yield
    finally:
        Outbox.take, Outbox.say, Fanout.changed, Session._retune_budget = take, say, changed, pace


async def busy(name):
    """A reader that is slower than what comes."""
    dice = random.Random(7)
    edge = Edge(EdgeConfig(sweep_ms=3_600_000, notsent_lowat=2048, flush_bytes=4096))
    admit = 0

    def put(path, size):
        nonlocal admit
        admit += 1
        now = edge.now_us()
        edge.fanout.publish(Publication(path, filler(admit, size), admit, now, policy=BLOB), now)
        edge.flush_soon()

    port = await edge.start()
    for i in range(12):
        put(f"t/{i}", 100 + 120 * i)
    loop, sock = asyncio.get_running_loop(), socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    sock.setblocking(False)
    await loop.sock_connect(sock, ("127.0.0.1", port))
    hello = frames.Hello(1, frames.HelloOptions(bytes_per_s=BUDGETS[name]))
    said = b"".join(
        bytes([0x82, 0x80 | len(data), 0, 0, 0, 0]) + data
        for data in map(codec.encode, (hello, frames.Subscribe(1, "#")))
    )
    await loop.sock_sendall(
        sock,
        b"GET /ws HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n" + said,
    )
    for turn in range(160):
        await asyncio.sleep(0.004)
        for _ in range(dice.randrange(4)):
            i = min(11, int(dice.expovariate(0.3)))
            put(f"t/{i}", 100 + 120 * i)
        if turn % 4 == 0:
            await loop.sock_recv(sock, 1500)
    while any(not outbox.idle for outbox in edge.carriers):
        await loop.sock_recv(sock, 4096)
    return edge, sock


def record(name):
    async def main():
        lines = []
        with watched(name, lines):
            edge, sock = await busy(name)
        await edge.stop()
        sock.close()
        TRACES.mkdir(exist_ok=True)
        (TRACES / f"{name}.txt").write_text("\n".join(lines) + "\n")

    asyncio.run(main())


if __name__ == "__main__":
    for trace in BUDGETS:
        record(trace)
