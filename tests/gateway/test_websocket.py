"""Publishing over real WebSockets, with the `websockets` client on the other side."""

import asyncio
import json
from contextlib import asynccontextmanager

import pytest
from tests.support.async_until import until
from tests.support.memory_log import MemoryLog
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from edgewise.event.clock import ManualClock
from edgewise.event.schema import Schema
from edgewise.gateway.http import IngestServer
from edgewise.gateway.ingest_config import IngestConfig
from edgewise.gateway.quotas import Publisher, QuotaConfig
from edgewise.gateway.tokens import refuse_caller
from edgewise.gateway.websocket import CREDIT_MAX

SCHEMA = Schema.of("S", v="int")


@asynccontextmanager
async def serving(log, **config):
    server = IngestServer({"S": log}, ManualClock(1000), IngestConfig(**config))
    port = await server.start()
    try:
        yield server, f"ws://127.0.0.1:{port}/streams/S/publish"
    finally:
        log.open.set()
        await server.stop()


def frame(number, *values):
    return json.dumps({"id": number, "events": [{"v": v} for v in values]})


async def answer(client):
    async with asyncio.timeout(10):
        return json.loads(await client.recv())


def test_frames_are_acknowledged_when_they_are_durable():
    log = MemoryLog(SCHEMA)

    async def scenario():
        async with serving(log) as (server, url), connect(url) as client:
            assert await answer(client) == {"credit": CREDIT_MAX}
            await client.send(frame(7, 1, 2))
            got = await answer(client)
            assert got == {"ack": 7, "accepted": 2, "first": 0, "end": 2, "credit": CREDIT_MAX}
            await client.send(json.dumps({"id": 8, "events": {"v": "x"}}))
            refused = await answer(client)
            assert (refused["refused"], refused["problems"][0]["field"]) == (8, "v")
            await client.send(json.dumps({"id": 9, "events": {"ts": 5, "data": [3]}}).encode())
            assert (await answer(client))["ack"] == 9
            assert server.stats.accepted["S"] == 3

    asyncio.run(scenario())
    assert [(r["_ts"], r["v"]) for r in log.rows()] == [(1, 1), (1, 2), (5, 3)]


def test_a_client_may_have_its_credit_on_the_way_and_no_more():
    log = MemoryLog(SCHEMA)

    async def scenario():
        async with serving(log) as (_server, url), connect(url) as client:
            await answer(client)
            log.open.clear()
            for i in range(CREDIT_MAX):
                await client.send(frame(i, i))
            log.open.set()
            acks = [(await answer(client))["ack"] for _ in range(CREDIT_MAX)]
            assert acks == list(range(CREDIT_MAX))
            log.open.clear()
            for i in range(CREDIT_MAX + 1):
                await client.send(frame(i, i))
            with pytest.raises(ConnectionClosed) as closed:
                await answer(client)
            assert closed.value.rcvd.code == 1008

    asyncio.run(scenario())
    assert len(log.rows()) >= CREDIT_MAX


def test_a_smaller_credit_does_not_hit_frames_that_are_on_their_way():
    log = MemoryLog(SCHEMA)
    size = len(frame(10, 10))

    async def scenario():
        async with (
            serving(log, in_flight_bytes_max=size * CREDIT_MAX) as (server, url),
            connect(url) as client,
            connect(url) as other,
        ):
            await answer(client)
            await answer(other)
            log.open.clear()
            for i in range(10, 58):  # three quarters of what fits
                await other.send(frame(i, i))
            await until(lambda: server.stats.bytes_in_flight == 48 * size)
            await client.send(frame(9, "none"))  # answered at once, with the smaller number
            for i in range(10, 9 + CREDIT_MAX):  # sent under the number of the greeting
                await client.send(frame(i, i))
            first = await answer(client)
            await until(lambda: server.stats.bytes_in_flight == CREDIT_MAX * size)
            log.open.set()
            rest = [await answer(client) for _ in range(CREDIT_MAX - 1)]
            assert all("ack" in a for a in [await answer(other) for _ in range(48)])
            return first["credit"], [a.get("ack") or a["refused"] for a in rest]

    credit, numbers = asyncio.run(scenario())
    assert credit < CREDIT_MAX // 2
    assert sorted(numbers) == list(range(10, 9 + CREDIT_MAX))


def test_a_producer_goes_on_where_it_was_and_nothing_is_twice():
    log = MemoryLog(SCHEMA)

    async def scenario():
        async with serving(log) as (_server, url):
            async with connect(f"{url}?producer=p") as client:
                assert (await answer(client))["last"] == -1
                for i in range(3):
                    await client.send(frame(i, i))
                    await answer(client)
            async with connect(f"{url}?producer=p") as client:
                assert (await answer(client))["last"] == 2
                await client.send(frame(2, 2))
                assert (await answer(client))["duplicate"]
                await client.send(frame(3, 3))
                assert "duplicate" not in await answer(client)

    asyncio.run(scenario())
    assert [r["v"] for r in log.rows()] == [0, 1, 2, 3]


def test_effectively_once_takes_named_producers_only():
    log = MemoryLog(SCHEMA)

    async def scenario():
        async with serving(log, keyed=frozenset({"S"})) as (_server, url):
            with pytest.raises(InvalidStatus):
                await connect(url)
            async with connect(f"{url}?producer=p") as client:
                assert "last" in await answer(client)

    asyncio.run(scenario())


def test_a_full_disk_is_an_answer_and_the_connection_lives():
    log = MemoryLog(SCHEMA)
    log.full = True

    async def scenario():
        async with serving(log) as (_server, url), connect(url) as client:
            await answer(client)
            await client.send(frame(1, 1))
            got = await answer(client)
            assert (got["refused"], got["error"], got["retry_after_s"]) == (1, "full", 5)
            log.full = False
            await client.send(frame(1, 1))
            assert (await answer(client))["ack"] == 1

    asyncio.run(scenario())


def test_a_frame_that_was_not_appended_holds_back_its_producers_later_ones():
    log = MemoryLog(SCHEMA)

    async def scenario():
        async with serving(log) as (_server, url), connect(f"{url}?producer=p") as client:
            await answer(client)
            log.full = True
            log.open.clear()
            for i in range(5):
                await client.send(frame(i, i))
            log.open.set()
            refused = [await answer(client) for _ in range(5)]
            assert [r["refused"] for r in refused] == list(range(5))
            log.full = False
            await client.send(frame(4, 4))
            assert (await answer(client))["error"] == "hole"
            for i in range(5):
                await client.send(frame(i, i))
                assert "duplicate" not in await answer(client)

    asyncio.run(scenario())
    assert [r["v"] for r in log.rows()] == list(range(5))


@pytest.mark.parametrize("text", ["no json", "[]", '{"id": 1}', '{"id": "x", "events": []}'])
def test_a_frame_that_is_none_closes_the_connection(text):
    log = MemoryLog(SCHEMA)

    async def scenario():
        async with serving(log) as (_server, url), connect(url) as client:
            await answer(client)
            await client.send(text)
            with pytest.raises(ConnectionClosed) as closed:
                await answer(client)
            assert closed.value.rcvd.code == 1007

    asyncio.run(scenario())


def test_pages_of_other_sites_and_unknown_streams_are_turned_away():
    log = MemoryLog(SCHEMA)

    async def scenario():
        async with serving(log, origins=frozenset({"https://good.example"})) as (_server, url):
            for address, origin in (
                (url, "https://evil.example"),
                (url.replace("/S/", "/T/"), None),
            ):
                with pytest.raises(InvalidStatus):
                    await connect(address, origin=origin)
            async with connect(url, origin="https://good.example") as client:
                await answer(client)

    asyncio.run(scenario())


def test_a_token_opens_the_socket_and_one_that_expires_ends_it():
    log = MemoryLog(SCHEMA)
    good = {"t1"}

    def authorizer(token, _stream):
        return Publisher("ada") if token in good else refuse_caller("expired")

    async def scenario():
        async with serving(log, authorizer=authorizer) as (_server, url):
            with pytest.raises(InvalidStatus):
                await connect(url)
            async with connect(f"{url}?access_token=t1") as client:
                await answer(client)
                await client.send(frame(1, 1))
                assert (await answer(client))["ack"] == 1
                good.clear()
                await client.send(frame(2, 2))
                with pytest.raises(ConnectionClosed, match="expired"):
                    await answer(client)

    asyncio.run(scenario())
    assert [r["v"] for r in log.rows()] == [1]


def test_a_frame_beyond_the_rate_is_refused_with_the_time_to_wait_and_a_socket_too_many_with_429():
    log = MemoryLog(SCHEMA)

    async def scenario():
        quotas = QuotaConfig(events_per_s=1, requests_max=1)
        async with serving(log, quotas=quotas) as (_server, url), connect(url) as client:
            await answer(client)
            await client.send(frame(1, *range(9)))
            assert (await answer(client))["ack"] == 1
            await client.send(frame(2, 1))
            refused = await answer(client)
            assert (refused["error"], refused["retry_after_s"]) == ("quota", 8)
            with pytest.raises(InvalidStatus, match="429"):
                await connect(url)

    asyncio.run(scenario())
