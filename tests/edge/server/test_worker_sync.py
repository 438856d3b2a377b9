"""Two edges on one port, in one loop: real sockets, one order."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from edgewise.client.aio import connect
from edgewise.edge.config import EdgeConfig
from edgewise.edge.server.server import Edge
from edgewise.edge.server.worker_routing import WorkerRouter
from edgewise.edge.server.worker_sync import PrimarySync, WorkerSync
from edgewise.errors import ProtocolError
from edgewise.wire.codes import ProtocolCode

WAIT_S = 20


@asynccontextmanager
async def two(tmp_path):
    """Each also on a port of its own, so that a test can choose."""
    edges = [Edge(EdgeConfig()) for _ in range(2)]
    head, limb = PrimarySync(edges[0]), WorkerSync(edges[1])
    edges[0].publish("before", {"v": 1}, offset=0, at_us=1)
    await head.start(tmp_path / "head.sock")
    await limb.start(tmp_path / "head.sock")
    ports = [await edge.start() for edge in edges]
    try:
        async with asyncio.timeout(WAIT_S):
            yield edges, [f"ws://127.0.0.1:{port}/ws" for port in ports], head, limb
    finally:
        for edge in edges:
            await edge.stop()
        await limb.stop()
        await head.stop()


async def values(subscription, count):
    found = []
    while len(found) < count:
        found.append((await anext(subscription)).value["v"])
    return found


def test_what_one_takes_the_other_shows_in_the_same_order(tmp_path):
    async def main():
        async with (
            two(tmp_path) as (edges, urls, _, _),
            connect(urls[0]) as a,
            connect(urls[1]) as b,
        ):
            seen = [client.subscribe("t") for client in (a, b)]
            for client in (a, b):
                await client.opened.wait()
            for i in range(10):
                await (a, b)[i % 2].publish("t", {"v": i})
            assert edges[0].value("t") == edges[1].value("t") == {"v": 9}
            for subscription in seen:
                found = await values(subscription, 1)
                while found[-1] != 9:
                    found += await values(subscription, 1)
                assert found == sorted(found)
            heads = [edge.fanout.tree.get("t").head for edge in edges]
            assert (heads[0].epoch, heads[0].to) == (heads[1].epoch, heads[1].to)

    asyncio.run(main())


def test_a_limb_begins_with_a_copy_and_follows_the_node(tmp_path):
    async def main():
        async with two(tmp_path) as (edges, urls, _, _), connect(urls[1]) as client:
            subscription = client.subscribe("#")
            assert await values(subscription, 1) == [1]
            edges[0].publish("before", {"v": 2}, offset=1, at_us=2)
            assert await values(subscription, 1) == [2]
            edges[0].remove("before")
            while edges[1].value("before") is not None:  # noqa: ASYNC110
                await asyncio.sleep(0)

    asyncio.run(main())


def test_a_refusal_comes_back_from_the_one_that_decides(tmp_path):
    async def main():
        async with two(tmp_path) as (_, urls, _, _), connect(urls[1]) as client:
            await client.opened.wait()
            with pytest.raises(ProtocolError) as refused:
                await client.publish("a", 17)
            assert refused.value.code == ProtocolCode.BAD_VALUE

    asyncio.run(main())


def test_without_its_head_a_limb_says_busy_and_ends(tmp_path):
    async def main():
        async with two(tmp_path) as (_, urls, head, limb), connect(urls[1]) as client:
            await client.opened.wait()
            await head.stop()
            await limb.ended.wait()
            with pytest.raises(ProtocolError) as refused:
                await client.publish("a", {"v": 1})
            assert refused.value.code == ProtocolCode.BUSY

    asyncio.run(main())


def test_the_kernel_spreads_connections_over_a_shared_port_and_all_transports_work(tmp_path):
    async def main():
        edges = [Edge(EdgeConfig()) for _ in range(2)]
        head, limb = PrimarySync(edges[0]), WorkerSync(edges[1])
        await head.start(tmp_path / "head.sock")
        await limb.start(tmp_path / "head.sock")
        passing = [WorkerRouter(edge, i, tmp_path) for i, edge in enumerate(edges)]
        port = await edges[0].start(share_port=True)
        await edges[1].start(port=port, share_port=True)
        for each in passing:
            await each.start()
        clients = []
        try:
            async with asyncio.timeout(WAIT_S):
                for i in range(24):
                    kind = ["websocket", "sse", "poll"][i % 3]
                    url = f"ws://127.0.0.1:{port}/ws"
                    clients.append(await connect(url, transports=[kind]).__aenter__())
                for i, client in enumerate(clients):
                    await client.opened.wait()
                    await client.publish(f"t/{i}", {"v": i})
                for i, client in enumerate(clients):
                    found = await values(client.subscribe(f"t/{23 - i}"), 1)
                    assert found == [23 - i]
                assert all(len(edge.sessions) for edge in edges)
        finally:
            for client in clients:
                await client.close()
            for each in passing:
                await each.stop()
            for edge in edges:
                await edge.stop()
            await limb.stop()
            await head.stop()

    asyncio.run(main())
