"""Start an edge on loopback and talk to it with a bare protocol client."""

import asyncio

from websockets.asyncio.client import connect

from edgewise.edge.config import EdgeConfig
from edgewise.edge.server.server import Edge
from edgewise.wire import codec, frames
from edgewise.wire.view import Update, View

WAIT_S = 10


class Peer:
    """A bare protocol client: frames in, frames out."""

    def __init__(self, socket):
        self.socket = socket
        self.view = View()

    async def say(self, *all_frames):
        for frame in all_frames:
            await self.socket.send(codec.encode(frame))

    async def hear(self):
        async with asyncio.timeout(WAIT_S):
            return codec.decode_from_server(await self.socket.recv())

    async def update(self):
        while True:
            event = self.view.take(await self.hear())
            if isinstance(event, Update):
                return event


def with_edge(scenario, **config):
    async def main():
        edge = Edge(EdgeConfig(**config))
        port = await edge.start()
        try:
            async with asyncio.timeout(3 * WAIT_S):
                await scenario(edge, port)
        finally:
            await edge.stop()

    asyncio.run(main())


def open_peer(port):
    return connect(f"ws://127.0.0.1:{port}/ws", compression=None, max_size=None)


async def subscribed(websocket, selector="#"):
    peer = Peer(websocket)
    await peer.say(frames.Hello(1), frames.Subscribe(1, selector))
    assert isinstance(await peer.hear(), frames.Welcome)
    assert isinstance(await peer.hear(), frames.Subscribed)
    return peer


async def until(condition):
    async with asyncio.timeout(WAIT_S):
        while not condition():  # noqa: ASYNC110 - the edge has no event for this
            await asyncio.sleep(0.001)


def put(edge, path, value):
    edge.publish(path, value, offset=edge.fanout.published, at_us=1)
