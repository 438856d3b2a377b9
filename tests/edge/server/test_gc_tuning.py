import asyncio
import gc
import weakref

import msgspec
import pytest
from tests.edge.transports.test_connection import UPGRADE, Recorder
from websockets.frames import Frame, Opcode

from edgewise.edge.server.gc_tuning import MIDDLE, OLD_MAX, THRESHOLDS, YOUNG, tune_collector
from edgewise.edge.server.server import Edge
from edgewise.edge.topics.tree import Policy
from edgewise.edge.transports.connection import Connection
from edgewise.wire import codec, frames


class Knot:
    def __init__(self):
        self.me = self


@pytest.fixture
def _usual():
    before = gc.get_threshold()
    yield
    gc.unfreeze()
    gc.set_threshold(*before)


@pytest.mark.usefixtures("_usual")
def test_what_was_there_is_not_looked_at_again_and_later_knots_are_still_collected():
    tune_collector()
    assert gc.get_freeze_count() > 0
    assert gc.get_threshold() == THRESHOLDS
    gone = weakref.ref(Knot())
    gc.collect()
    assert gone() is None


def test_a_full_collection_comes_after_so_many_old_objects():
    young, middle, old = THRESHOLDS
    assert (young, middle) == (YOUNG, MIDDLE)
    assert young * middle * old == OLD_MAX


HELLO, BYE = codec.encode(frames.Hello(1)), codec.encode(frames.Close(1000, "bye"))
WISHES = [
    codec.encode(frames.Subscribe(1, "#")),
    codec.encode(frames.Subscribe(2, "a/+", frames.SubscribeOptions(rate=0.5))),
    codec.encode(frames.Subscribe(3, "a/b", frames.SubscribeOptions(window=["mean"]))),
    codec.encode(frames.Request(1, "nobody/here", None)),
    codec.encode(frames.Publish(2, "a/b", {"n": 3})),
    codec.encode(frames.Unsubscribe(1)),
    b"\xc1 no frame",
]


def ws(data, opcode=Opcode.BINARY, *, fin=True):
    return Frame(opcode, data, fin=fin).serialize(mask=True)


def post(path, body):
    return b"POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s" % (
        path,
        len(body),
        body,
    )


def polled(*said):
    return post(b"/poll", msgspec.msgpack.encode(said))


CONVERSATIONS = {
    "websocket": [UPGRADE, ws(HELLO), *map(ws, WISHES)],
    "websocket that says goodbye": [UPGRADE, ws(HELLO), ws(BYE), ws(b"\x03\xe8", Opcode.CLOSE)],
    "websocket in parts": [
        UPGRADE + ws(HELLO[:1], fin=False),
        ws(b"", Opcode.PING),
        ws(HELLO[1:], Opcode.CONT),
        ws(WISHES[0], fin=False),
    ],
    "websocket that speaks text": [UPGRADE + ws(HELLO), ws(b"hello", Opcode.TEXT)],
    "websocket that breaks the rules": [UPGRADE + ws(HELLO), b"\x83\x80\0\0\0\0"],
    "a handshake that is none": [UPGRADE.replace(b"dGhl", b"")],
    "server-sent events": [post(b"/sse", HELLO)],
    "long poll": [polled(HELLO, *WISHES[:-1], BYE)],
    "long poll that waits": [polled(HELLO), polled(BYE)],
    "a plain question": [b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"],
    "half a question": [b"GET /healthz HTTP/1.1\r\nHo"],
    "no HTTP at all": [b"\0\1\2\r\n\r\n"],
}
OFTEN = 20


@pytest.mark.parametrize("said", CONVERSATIONS.values(), ids=CONVERSATIONS.keys())
def test_nothing_waits_for_the_collector_when_a_session_has_ended(said):
    async def main():
        edge = Edge()
        await edge.attach_loop()

        def publish(number):
            for path, conflate in (("a/b", "replace"), ("a/c", "off"), ("a/d", "merge(sum)")):
                policy = Policy(conflate=conflate)
                edge.publish(path, {"n": number}, offset=number, at_us=number, policy=policy)

        async def talk(number):
            connection = Connection(edge)
            connection.connection_made(Recorder())
            for data in said:
                connection.data_received(data)
                publish(number)
                edge.flushes._start()
            connection.connection_lost(None)
            for carrier in [*edge._polls]:
                edge._end(carrier)
            await asyncio.sleep(0)

        for number in range(3):
            await talk(number)
        gc.collect()
        before = len(gc.get_objects())
        for number in range(3, 3 + OFTEN):
            await talk(number)
        assert len(gc.get_objects()) - before < OFTEN
        assert not edge.carriers
        assert not len(edge.connections)
        await edge.stop()

    gc.disable()
    try:
        asyncio.run(main())
    finally:
        gc.enable()
