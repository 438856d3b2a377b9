"""The async client against a real edge over loopback."""

import asyncio

import pytest

from edgewise.client.aio import MAILBOX_MAX, connect
from edgewise.edge.config import EdgeConfig
from edgewise.edge.server.server import Edge
from edgewise.errors import ProtocolError

WAIT_S = 20


def with_client(scenario, **config):
    async def main():
        edge = Edge(EdgeConfig(**config))
        port = await edge.start()
        try:
            async with asyncio.timeout(WAIT_S), connect(f"ws://127.0.0.1:{port}/ws") as client:
                await client.opened.wait()
                await scenario(edge, client, port)
        finally:
            await edge.stop()

    asyncio.run(main())


def put(edge, path, value):
    edge.publish(path, value, offset=edge.fanout.published, at_us=1)


def test_subscribe_in_three_lines():
    async def scenario(edge, client, port):
        put(edge, "a/1", {"v": 1})
        subscription = client.subscribe("a/#")
        first = await anext(subscription)
        assert (first.path, first.value, first.meta.count) == ("a/1", {"v": 1}, 1)
        put(edge, "a/1", {"v": 2})
        assert (await anext(subscription)).value == {"v": 2}
        assert client.value("a/1") == {"v": 2}
        await subscription.close()

    with_client(scenario)


def test_a_slow_consumer_gets_fewer_and_newer_values():
    async def scenario(edge, client, port):
        subscription = client.subscribe("a")
        put(edge, "a", {"v": 0})
        await anext(subscription)
        last = 100_000
        for v in range(1, last + 1):
            put(edge, "a", {"v": v, "filler": "x" * 500})
            if v % 20 == 0:
                await asyncio.sleep(0)
        seen = 0
        while (await anext(subscription)).value["v"] != last:
            seen += 1
        assert seen < last / 2
        assert seen < MAILBOX_MAX + 10_000

    with_client(scenario, tick_ms=1)


def test_after_a_restart_the_client_comes_back_and_sees_what_is_gone():
    async def scenario(edge, client, port):
        put(edge, "a/old", {"v": 1})
        put(edge, "a/both", {"v": 1})
        subscription = client.subscribe("a/#")
        assert {(await anext(subscription)).path for _ in range(2)} == {"a/old", "a/both"}
        await edge.stop()
        again = Edge()
        put_later = {"v": 2}
        await again.start(port=port)
        try:
            again.publish("a/both", put_later, offset=9, at_us=9)
            events = [await anext(subscription) for _ in range(2)]
            kinds = {type(e).__name__: e.path for e in events}
            assert kinds == {"Removed": "a/old", "Update": "a/both"}
        finally:
            await again.stop()

    with_client(scenario)


def test_a_bad_selector_ends_the_subscription_with_the_reason():
    async def scenario(edge, client, port):
        for _ in range(2):
            client.subscribe("x")
        refused = client.subscribe("y")
        with pytest.raises(ProtocolError, match="2 subscriptions"):
            await anext(refused)
        with pytest.raises(ProtocolError, match="empty segment"):
            client.subscribe("a//b")

    with_client(scenario, subscriptions_max=2)


def test_calls_that_nobody_serves_fail():
    async def scenario(edge, client, port):
        with pytest.raises(ProtocolError, match="nobody"):
            await client.request("nobody")

    with_client(scenario)


def test_closing_ends_every_subscription():
    async def scenario(edge, client, port):
        subscription = client.subscribe("a")
        await client.close()
        assert [e async for e in subscription] == []
        assert client.state == "closed"

    with_client(scenario)


class FreezingProxy:
    """Forwards to a port until it is frozen, as a process that was stopped: it keeps its
    connections and accepts new ones, and moves no bytes.
    """

    def __init__(self, port):
        self.target = port
        self.moving = asyncio.Event()
        self.moving.set()
        self.writers = []

    async def start(self):
        self.server = await asyncio.start_server(self.serve, "127.0.0.1", 0)
        return self.server.sockets[0].getsockname()[1]

    async def serve(self, reader, writer):
        self.writers.append(writer)
        await self.moving.wait()
        back, forth = await asyncio.open_connection("127.0.0.1", self.target)
        self.writers.append(forth)
        await asyncio.gather(self.move(reader, forth), self.move(back, writer))

    async def move(self, reader, writer):
        while data := await reader.read(65536):
            await self.moving.wait()
            writer.write(data)

    def close(self):
        self.server.close()
        for writer in self.writers:
            writer.close()


@pytest.mark.parametrize("transport", ["websocket", "sse", "poll"])
def test_a_client_leaves_an_edge_that_is_silent_for_another(transport):
    async def main():
        edges = [Edge(EdgeConfig()), Edge(EdgeConfig())]
        ports = [await edge.start() for edge in edges]
        proxy = FreezingProxy(ports[0])
        urls = tuple(f"ws://127.0.0.1:{port}/ws" for port in (await proxy.start(), ports[1]))
        put(edges[0], "a", {"from": "one"})
        put(edges[1], "a", {"from": "one"})  # edges on one log: at the same offset the same value
        put(edges[1], "a", {"from": "two"})
        try:
            async with (
                asyncio.timeout(WAIT_S),
                connect(urls, silence_s=0.1, transports=(transport,)) as client,
            ):
                subscription = client.subscribe("a")
                assert (await anext(subscription)).value == {"from": "one"}
                proxy.moving.clear()
                while (await anext(subscription)).value != {"from": "two"}:
                    pass
        finally:
            proxy.close()
            for edge in edges:
                await edge.stop()

    asyncio.run(main())


def test_a_quiet_edge_that_answers_keeps_its_client():
    async def scenario(edge, client, port):
        put(edge, "a", {"v": 1})
        async with connect(f"ws://127.0.0.1:{port}/ws", silence_s=0.05) as other:
            subscription = other.subscribe("a")
            await anext(subscription)
            session = other._conversation.session_name
            await asyncio.sleep(0.5)  # ten times its patience, and nothing happens
            assert other._conversation.session_name == session
            assert other.state == "open"

    with_client(scenario)
