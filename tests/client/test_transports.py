"""Each way to an edge, over loopback."""

import asyncio
from http import HTTPStatus

import pytest

from edgewise.client.aio import connect
from edgewise.client.transports import TRANSPORTS, EdgeAddress, TransportLost, open_transport
from edgewise.edge.config import EdgeConfig
from edgewise.edge.server.server import Edge
from edgewise.edge.transports.http import problem_response

WAIT_S = 20


def with_edge(scenario, **config):
    async def main():
        edge = Edge(EdgeConfig(**config))
        port = await edge.start()
        try:
            async with asyncio.timeout(WAIT_S):
                await scenario(edge, f"ws://127.0.0.1:{port}/ws")
        finally:
            await edge.stop()

    asyncio.run(main())


def put(edge, path, value):
    edge.publish(path, value, offset=edge.fanout.published, at_us=1)


@pytest.mark.parametrize("kind", TRANSPORTS)
def test_the_same_conversation_on_each_lane(kind):
    async def scenario(edge, url):
        async def double(_principal, _path, body):
            return body * 2

        edge.serve("double", double)
        put(edge, "a/1", {"v": 1})
        async with connect(url, transports=(kind,)) as client:
            await client.opened.wait()
            subscription = client.subscribe("a/#")
            assert (await anext(subscription)).value == {"v": 1}
            for v in range(2, 6):
                put(edge, "a/1", {"v": v})
                while (await anext(subscription)).value != {"v": v}:
                    pass
            await client.publish("a/mine", {"v": 9})
            assert (await anext(subscription)).value == {"v": 9}
            assert await client.request("double", 21) == 42

            async def who(_body):
                return "me"

            client.on_request("who", who)
            assert await edge.ask(edge.sessions[0].name, "who") == "me"
            assert client.transport == kind

    with_edge(scenario)


class NoWebSockets(Edge):
    """A network that lets HTTP through and nothing else."""

    def upgrade_refused(self, headers):
        return (
            problem_response(HTTPStatus.BAD_GATEWAY, "blocked") if "upgrade" in headers else None
        )


def test_the_next_lane_is_tried_when_one_is_blocked():
    async def main():
        edge = NoWebSockets()
        port = await edge.start()
        put(edge, "a", {"v": 1})
        async with asyncio.timeout(WAIT_S), connect(f"ws://127.0.0.1:{port}/ws") as client:
            await client.opened.wait()
            assert client.transport == "sse"
            assert (await anext(client.subscribe("a"))).value == {"v": 1}
        await edge.stop()

    asyncio.run(main())


def test_when_an_edge_goes_its_client_moves_to_the_next():
    async def main():
        first, second = Edge(), Edge()
        urls = tuple([f"ws://127.0.0.1:{await e.start()}/ws" for e in (first, second)])
        for edge in (first, second):
            edge.publish("a", {"v": 1}, offset=4, at_us=1, epoch=2)
        async with asyncio.timeout(WAIT_S), connect(urls) as client:
            subscription = client.subscribe("a")
            assert (await anext(subscription)).meta.how.name == "SNAPSHOT"
            await first.stop()
            second.publish("a", {"v": 2}, offset=5, at_us=2, epoch=2)
            update = await anext(subscription)
            assert (update.value, update.meta.start, update.meta.to) == ({"v": 2}, 5, 6)
        await second.stop()

    asyncio.run(main())


def test_a_site_from_its_websocket_address():
    assert EdgeAddress.of("ws://h:81/ws") == EdgeAddress("h", 81, secure=False, base="")
    assert EdgeAddress.of("wss://h/edge/ws") == EdgeAddress("h", 443, secure=True, base="/edge")


@pytest.mark.parametrize("kind", TRANSPORTS)
def test_nobody_there_is_a_lost_lane(kind):
    async def knock():
        lane = await open_transport(kind, "ws://127.0.0.1:1/ws")
        await lane.send([b"x"])

    with pytest.raises(TransportLost):
        asyncio.run(knock())


@pytest.mark.parametrize("path", ["/send?session=none", "/poll?session=none", "/nothing"])
def test_a_session_that_is_gone_is_a_lost_lane(path):
    async def scenario(edge, url):
        with pytest.raises(TransportLost):
            await EdgeAddress.of(url).exchange(path, [])

    with_edge(scenario)
