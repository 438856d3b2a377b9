"""Every code of the table, met by a client of a real edge over a real socket."""

import asyncio
import base64
from contextlib import asynccontextmanager

import msgspec
import pytest
from websockets.asyncio.client import connect as open_socket
from websockets.exceptions import ConnectionClosed

from edgewise.client.aio import connect
from edgewise.edge.access.auth import Principal, parse_selectors
from edgewise.edge.config import EdgeConfig
from edgewise.edge.server import requests as calls
from edgewise.edge.server.server import Edge, now_us
from edgewise.edge.topics.tree import Policy
from edgewise.errors import ProtocolError
from edgewise.wire import codec, frames
from edgewise.wire.codes import ProtocolCode

WAIT_S = 20
OFF = Policy(conflate="off")


class Tokens:
    """A token says what its principal may."""

    def verify(self, token):
        if not token:
            raise ProtocolError(ProtocolCode.UNAUTHENTICATED, "no token")
        return Principal(
            "p",
            read=parse_selectors(["#"]),
            publish=parse_selectors(["mine/#"]),
            request=parse_selectors(["mine/#"]),
            sessions_max=1 if token == "one" else 0,
            expires_us=now_us() + 50_000 if token == "short" else 0,
        )


class Line:
    """Frames over a WebSocket."""

    def __init__(self, socket):
        self.socket = socket

    async def say(self, *all_frames):
        for frame in all_frames:
            await self.socket.send(codec.encode(frame))

    async def code(self):
        """The first code the edge says."""
        while True:
            frame = codec.decode_from_server(await self.socket.recv())
            if isinstance(frame, (frames.Close, frames.Error, frames.Paused)):
                return frame.code


@asynccontextmanager
async def line(edge, hello=True, token=""):
    async with open_socket(f"ws://127.0.0.1:{edge.port}/ws", max_size=None) as socket:
        one = Line(socket)
        if hello:
            await one.say(frames.Hello(1, frames.HelloOptions(token=token)))
        yield one


async def hears(edge, *said, hello=True, token=""):
    async with line(edge, hello, token) as one:
        await one.say(*said)
        return await one.code()


async def shutdown(edge):
    async with line(edge) as one:
        await one.say(frames.Ping(1))
        await one.socket.recv()
        await edge.stop()
        return await one.code()


async def one_too_many(edge):
    async with line(edge):
        return await hears(edge, hello=False)


async def unread(edge):
    async with line(edge) as one:
        await one.say(frames.Subscribe(1, f"#/{LONG}"))
        assert await one.code() == ProtocolCode.BAD_SELECTOR
        return await one.code()


async def too_large(edge):
    async with line(edge) as one:
        await one.socket.send(b"x" * 2000)
        return await one.code()


async def two_of_one(edge):
    async with line(edge, token="one") as first:
        await first.say(frames.Ping(1))
        await first.socket.recv()
        return await hears(edge, token="one")


async def shut_down(edge):
    async with line(edge) as one:
        await one.say(frames.Close(ProtocolCode.DONE, "bye"))
        with pytest.raises(ConnectionClosed) as ended:
            await one.code()
        return ended.value.rcvd.code


async def lost(edge):
    """Never sent: what a client says of a connection that broke."""
    async with connect(f"ws://127.0.0.1:{edge.port}/ws") as client:
        await client.opened.wait()
        asked = asyncio.create_task(client.request("slow", 1))
        while not edge.sessions:  # noqa: ASYNC110
            await asyncio.sleep(0)
        for connection in edge.connections:
            connection._transport.abort()
        with pytest.raises(ProtocolError) as ended:
            await asked
        return ended.value.code


async def queue_full(edge):
    edge.publish("off", {"v": 0}, offset=0, at_us=1, policy=OFF)
    async with line(edge) as one:
        await one.say(frames.Subscribe(1, "off"))
        while not isinstance(codec.decode_from_server(await one.socket.recv()), frames.Value):
            pass
        for i in range(1, 5):
            edge.publish("off", {"v": i}, offset=i, at_us=1)
        return await one.code()


async def busy(edge):
    return await hears(edge, *(frames.Request(i, "slow", 1) for i in range(calls.CALLS_MAX + 1)))


LONG = "/".join("x" * 30 for _ in range(30))
GUARDED = {"verifier": Tokens()}
NOTHING = {}
TOPICS = {"topics_max": 1}

# code: what happens, on an edge with which limits
MET = {
    ProtocolCode.SHUTDOWN: (shutdown, NOTHING),
    ProtocolCode.OVERLOADED: (one_too_many, {"sessions_max": 1}),
    ProtocolCode.IDLE: (hears, {"idle_ms": 60, "ping_ms": 20, "sweep_ms": 10}),
    ProtocolCode.HANDSHAKE_TIMEOUT: (
        lambda edge: hears(edge, hello=False),
        {"handshake_ms": 20, "sweep_ms": 10},
    ),
    ProtocolCode.UNREADABLE: (unread, {"control_bytes_max": 500}),
    ProtocolCode.TOKEN_EXPIRED: (
        lambda edge: hears(edge, token="short"),
        {**GUARDED, "sweep_ms": 10},
    ),
    ProtocolCode.LOST: (lost, NOTHING),
    ProtocolCode.BAD_FRAME: (lambda edge: hears(edge, [99]), NOTHING),
    ProtocolCode.FRAME_TOO_LARGE: (too_large, {"frame_bytes_max": 1000}),
    ProtocolCode.HELLO_EXPECTED: (
        lambda edge: hears(edge, frames.Subscribe(1, "a"), hello=False),
        NOTHING,
    ),
    ProtocolCode.VERSION_UNKNOWN: (
        lambda edge: hears(edge, frames.Hello(99), hello=False),
        NOTHING,
    ),
    ProtocolCode.UNAUTHENTICATED: (hears, GUARDED),
    ProtocolCode.TOO_MANY_SESSIONS: (two_of_one, GUARDED),
    ProtocolCode.DONE: (shut_down, NOTHING),
    ProtocolCode.BUSY: (busy, NOTHING),
    ProtocolCode.QUEUE_FULL: (queue_full, {"queue_max": 2}),
    ProtocolCode.NO_ANSWER: (
        lambda edge: hears(edge, frames.Request(1, "slow", 1)),
        {"answer_s": 0.02},
    ),
    ProtocolCode.BAD_SELECTOR: (lambda edge: hears(edge, frames.Subscribe(1, "a/#/b")), NOTHING),
    ProtocolCode.BAD_PATH: (lambda edge: hears(edge, frames.Publish(1, "a//b", {})), NOTHING),
    ProtocolCode.FORBIDDEN: (
        lambda edge: hears(edge, frames.Publish(1, "theirs", {}), token="t"),
        GUARDED,
    ),
    ProtocolCode.TOO_MANY_SUBSCRIPTIONS: (
        lambda edge: hears(edge, frames.Subscribe(1, "a"), frames.Subscribe(2, "b")),
        {"subscriptions_max": 1},
    ),
    ProtocolCode.TOO_MANY_TOPICS: (
        lambda edge: hears(edge, frames.Publish(1, "a", {}), frames.Publish(2, "b", {})),
        TOPICS,
    ),
    ProtocolCode.NOT_FOUND: (lambda edge: hears(edge, frames.Request(1, "nobody", 1)), NOTHING),
    ProtocolCode.BAD_VALUE: (lambda edge: hears(edge, frames.Publish(1, "a", 17)), NOTHING),
    ProtocolCode.DUPLICATE_ID: (
        lambda edge: hears(edge, frames.Subscribe(1, "a"), frames.Subscribe(1, "b")),
        NOTHING,
    ),
}


async def slow(_principal, _path, _body):
    await asyncio.Event().wait()


@pytest.mark.parametrize("code", ProtocolCode, ids=lambda code: code.name)
def test_the_code_is_reached(code, monkeypatch):
    happens, limits = MET[code]
    limits = dict(limits)
    monkeypatch.setattr(calls, "ANSWER_S", limits.pop("answer_s", calls.ANSWER_S))

    async def main():
        edge = Edge(EdgeConfig(**limits))
        edge.port = await edge.start()
        edge.serve("slow", slow)
        try:
            async with asyncio.timeout(WAIT_S):
                return await happens(edge)
        finally:
            await edge.stop()

    assert asyncio.run(main()) == code


@pytest.mark.parametrize("how", ["sse", "poll"])
def test_who_is_turned_away_hears_it_on_every_transport(how):
    async def main():
        edge = Edge(EdgeConfig(sessions_max=1))
        edge.port = await edge.start()
        async with asyncio.timeout(WAIT_S), line(edge) as one:
            await one.say(frames.Ping(1))
            await one.socket.recv()
            reader, writer = await asyncio.open_connection("127.0.0.1", edge.port)
            hello = codec.encode(frames.Hello(1))
            body = hello if how == "sse" else msgspec.msgpack.encode([hello])
            writer.write(
                f"POST /{how} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n"
                f"content-length: {len(body)}\r\n\r\n".encode()
                + body
            )
            answer = await reader.read()
            writer.close()
        await edge.stop()
        return answer

    answer = asyncio.run(main())
    assert answer.startswith(b"HTTP/1.1 200")
    assert frames.Close(ProtocolCode.OVERLOADED, "the server takes no new sessions now") in said(
        answer, how
    )


def said(answer, how):
    _, _, body = answer.partition(b"\r\n\r\n")
    if how == "poll":
        parts = msgspec.msgpack.decode(body)
    else:
        parts = [base64.b64decode(p[6:]) for p in body.split(b"\n\n") if p.startswith(b"data: ")]
    return [codec.decode_from_server(p) for p in parts]
