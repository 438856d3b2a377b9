"""The edge over loopback, with a real WebSocket client."""

import asyncio
import itertools
import json
import socket
import ssl
from unittest.mock import Mock

import pytest
from tests.support.certificate import certificate
from tests.support.edge_peer import WAIT_S, Peer, open_peer, put, subscribed, until, with_edge
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from edgewise.edge.metrics import reports
from edgewise.edge.server import flush_scheduler as flushes
from edgewise.edge.server import server, sweeper
from edgewise.edge.server.server import Edge
from edgewise.edge.topics.tree import Policy, Publication
from edgewise.edge.transports.emulated import PollConnection
from edgewise.errors import ProtocolError, SetupError
from edgewise.wire import codec, frames
from edgewise.wire.codes import ProtocolCode


def test_a_subscriber_gets_the_current_value_then_updates():
    async def scenario(edge, port):
        put(edge, "a/1", {"v": 1})
        async with open_peer(port) as websocket:
            peer = await subscribed(websocket)
            assert (await peer.update()).value == {"v": 1}
            put(edge, "a/1", {"v": 2})
            assert (await peer.update()).value == {"v": 2}
        await until(lambda: not edge.stats.sessions)
        assert edge.stats.updates_sent == 2
        assert not edge.fanout.tree.get("a/1").subscriptions

    with_edge(scenario)


def test_a_client_that_never_reads_costs_one_value_per_topic_and_others_feel_nothing():
    topics, flushes, filler = 20, 400, "x" * 1000

    async def scenario(edge, port):
        sleeper = socket.create_connection(("127.0.0.1", port))
        sleeper.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        key = b"dGhlIHNhbXBsZSBub25jZQ=="
        sleeper.send(
            b"GET /ws HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: " + key + b"\r\n\r\n"
        )
        for frame in (frames.Hello(1), frames.Subscribe(1, "#")):
            data = codec.encode(frame)
            sleeper.send(bytes([0x82, 0x80 | len(data), 0, 0, 0, 0]) + data)
        await until(lambda: edge.stats.sessions)
        async with open_peer(port) as websocket:
            peer = await subscribed(websocket)
            for i in range(flushes):
                for t in range(topics):
                    put(edge, f"t/{t}", {"v": i, "filler": filler + str(i)})
                seen = set()
                while len(seen) < topics:
                    update = await peer.update()
                    if update.value["v"] == i:
                        seen.add(update.path)
            assert edge.stats.pending <= topics
            assert edge.stats.conflated > topics * flushes / 2
            slow = next(c for c in edge.carriers.values() if not c._writable)
            assert slow._transport.get_write_buffer_size() < 64 * 1024
        sleeper.close()

    with_edge(scenario)


def test_many_topics_within_a_tick_share_a_write():
    async def scenario(edge, port):
        async with open_peer(port) as websocket:
            peer = await subscribed(websocket)
            put(edge, "first", {})
            await peer.update()
            connection = next(iter(edge.carriers.values()))
            transport, writes = connection._transport, []
            connection._transport = Mock(wraps=transport)
            connection._transport.write.side_effect = lambda data: (
                writes.append(len(data)),
                transport.write(data),
            )
            # Long enough for a hundred updates on a slow machine: they all belong to one tick.
            edge.flushes.tick_us, edge.flushes._ended_us = 500_000, edge.now_us()
            for i in range(100):
                put(edge, f"t/{i}", {"v": i})
                if i % 10 == 0:
                    await asyncio.sleep(0)
            for _ in range(100):
                await peer.update()
            assert len(writes) == 1

    with_edge(scenario)


def test_http_and_websocket_share_the_port():
    async def scenario(edge, port):
        put(edge, "fx/eur", {"bid": 1.5})
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /topics/fx/eur HTTP/1.1\r\nhost: localhost\r\n\r\n")
        head = await reader.readuntil(b"\r\n\r\n")
        assert b"200 OK" in head
        assert json.loads(await reader.readexactly(len(b'{"bid":1.5}'))) == {"bid": 1.5}
        writer.write(b"GET /nothing HTTP/1.1\r\nconnection: close\r\n\r\n")
        assert b"404 Not Found" in await reader.read()
        writer.close()

    with_edge(scenario)


def test_a_broken_client_is_closed_with_the_code_and_others_go_on():
    async def scenario(edge, port):
        async with open_peer(port) as websocket, open_peer(port) as other:
            good = await subscribed(other)
            bad = Peer(websocket)
            await websocket.send(b"\xc1\xc1")
            assert (await bad.hear()).code == ProtocolCode.BAD_FRAME
            await websocket.wait_closed()
            assert websocket.close_code == ProtocolCode.BAD_FRAME
            put(edge, "a", {"v": 1})
            assert (await good.update()).value == {"v": 1}

    with_edge(scenario)


def test_text_messages_are_refused():
    async def scenario(edge, port):
        async with open_peer(port) as websocket:
            await websocket.send("hello")
            assert (await Peer(websocket).hear()).code == ProtocolCode.BAD_FRAME

    with_edge(scenario)


def test_new_sessions_are_refused_before_old_ones_suffer():
    async def scenario(edge, port):
        async with open_peer(port) as websocket:
            await subscribed(websocket)
            async with open_peer(port) as late:
                assert (await Peer(late).hear()).code == ProtocolCode.OVERLOADED
            assert edge.stats.refused == 1

    with_edge(scenario, sessions_max=1)


def test_stop_says_goodbye():
    async def scenario(edge, port):
        async with open_peer(port) as websocket:
            peer = await subscribed(websocket)
            await edge.stop()
            assert (await peer.hear()).code == ProtocolCode.SHUTDOWN

    with_edge(scenario)


def test_values_from_another_thread_arrive_and_can_be_waited_for():
    async def scenario(edge, port):
        batch = [Publication(f"t/{i}", {"v": i}, offset=i, at_us=1) for i in range(10)]
        done = await asyncio.to_thread(edge.publish_threadsafe, batch)
        assert await asyncio.to_thread(done.wait, WAIT_S)
        assert edge.value("t/9") == {"v": 9}
        edge.publish_threadsafe([Publication("t/9", None, offset=11, at_us=1, remove=True)])
        await until(lambda: edge.value("t/9") is None)

    with_edge(scenario)


def test_a_value_that_cannot_travel_is_refused_at_the_door():
    async def scenario(edge, port):
        with pytest.raises(ProtocolError) as caught:
            put(edge, "a", {"v": 2**70})
        assert caught.value.code == ProtocolCode.BAD_VALUE
        assert edge.value("a") is None

    with_edge(scenario)


def test_a_public_address_demands_authentication():
    async def main():
        with pytest.raises(SetupError, match="authentication"):
            await Edge().start("0.0.0.0")

    asyncio.run(main())


def test_silence_expires_topics_by_the_sweep():
    async def scenario(edge, port):
        edge.publish("a", {}, offset=0, at_us=1, policy=Policy(ttl_ms=20))
        await until(lambda: edge.value("a") is None)

    with_edge(scenario, sweep_ms=10)


def test_the_edge_tells_about_groups_of_topics_to_whoever_wants_it(monkeypatch):
    monkeypatch.setattr(reports, "PUBLISH_MS", 1)

    async def scenario(edge, port):
        put(edge, "fx/eur", {"v": 1})
        async with connect(f"ws://127.0.0.1:{port}/ws") as socket:
            peer = Peer(socket)
            await peer.say(frames.Hello(1), frames.Subscribe(1, "fx/#"))
            await peer.say(frames.Subscribe(2, "$sys/topics/fx"))
            while (update := await peer.update()).path != "$sys/topics/fx":
                pass
            assert update.value["topics"] == 1
            assert update.value["updates"] == 1

    with_edge(scenario, sweep_ms=10)


def test_a_look_at_many_sessions_is_cut_in_slices(monkeypatch):
    """Whoever speaks meanwhile does not wait for it, and nobody is left out."""
    monkeypatch.setattr(sweeper, "SWEEP_SLICE", 2)
    order = []

    async def scenario(edge, port):
        for number in range(5):
            carrier = PollConnection(edge.config, edge.now_us())
            carrier.session = edge.open_session(carrier)
            monkeypatch.setattr(carrier.session, "tick", lambda _now, n=number: order.append(n))
        asyncio.get_running_loop().call_soon(order.append, "somebody")
        edge._sweeper._sweep()
        await until(lambda: len(order) >= 6)
        assert order.index("somebody") == 2
        assert {*order[:6]} == {0, 1, 2, 3, 4, "somebody"}

    with_edge(scenario, sweep_ms=10_000)


def test_many_sessions_are_counted_while_they_are_looked_at(monkeypatch):
    async def scenario(edge, port):
        edge.publish("a", {}, offset=0, at_us=1)
        for number in range(5):
            carrier = PollConnection(edge.config, edge.now_us())
            carrier.session = edge.open_session(carrier)
            carrier.bytes_sent = 10
            edge.fanout.subscribe(carrier.session.outbox, 1, ("a",))
            carrier.session.outbox.take(100 * (number % 2), 0)
        exact = edge.stats
        assert (exact.sessions, exact.pending, exact.bytes_sent) == (5, 3, 50)
        assert exact.updates_sent == 2
        for module in (server, sweeper):
            monkeypatch.setattr(module, "SWEEP_SLICE", 2)
        assert edge.stats.pending == 0
        edge._reports._published_us = 0
        edge._sweeper._sweep()
        await until(lambda: edge.value("$sys/edge") is not None)
        assert edge.value("$sys/edge")["pending"] == 3
        assert edge.stats.bytes_sent == 50

    with_edge(scenario, sweep_ms=10_000)


def test_the_same_over_tls(tmp_path):
    tls = certificate(tmp_path)
    trust = ssl.create_default_context(cafile=tls[0])
    trust.check_hostname = False

    async def scenario(edge, port):
        put(edge, "a", {"v": 1})
        url = f"wss://127.0.0.1:{port}/ws"
        async with connect(url, compression=None, ssl=trust) as websocket:
            peer = await subscribed(websocket)
            for v in range(1, 6):
                assert (await peer.update()).value == {"v": v}
                put(edge, "a", {"v": v + 1})

    with_edge(scenario, tls=tls)


def test_over_tls_too_a_client_that_never_reads_is_conflated(tmp_path):
    tls = certificate(tmp_path)
    trust = ssl.create_default_context(cafile=tls[0])

    async def scenario(edge, port):
        url = f"wss://127.0.0.1:{port}/ws"
        async with connect(url, compression=None, ssl=trust, max_queue=1) as websocket:
            await subscribed(websocket)
            connection = next(iter(edge.carriers.values()))
            for i in range(20_000):
                put(edge, "a", {"v": f"{i}" * 1000})
                await asyncio.sleep(0)
                if edge.stats.conflated > 100:
                    break
            assert edge.stats.conflated > 100
            assert edge.stats.pending == 1
            assert connection._transport.get_write_buffer_size() < 128 * 1024
            websocket.transport.abort()

    with_edge(scenario, tls=tls)


def test_while_a_round_takes_too_long_newcomers_are_refused_and_later_welcome():
    async def scenario(edge, port):
        edge.flushes.spent_us = 2_000_000
        edge.flushes._ended_us = edge.now_us()
        assert edge.overloaded
        async with open_peer(port) as late:
            assert (await Peer(late).hear()).code == ProtocolCode.OVERLOADED
        edge.flushes._start()
        async with open_peer(port) as websocket:
            await subscribed(websocket)

    with_edge(scenario)


def test_a_hiccup_of_the_machine_makes_nobody_wait(monkeypatch):
    """A round of one session that took long was interrupted, not busy."""

    async def scenario(edge, port):
        async with open_peer(port) as websocket:
            peer = await subscribed(websocket)
            clock = itertools.count(flushes.now_us(), 50_000)
            monkeypatch.setattr(flushes, "now_us", lambda: next(clock))
            edge.publish("a", {"v": 1}, offset=10, at_us=1)
            await peer.update()
            assert edge.flushes.spent_us >= 50_000
            assert edge.flushes.tick_us == 0

    with_edge(scenario)


def test_behind_a_trusted_proxy_each_client_has_its_own_room():
    async def scenario(edge, port):
        def as_client(address):
            return connect(
                f"ws://127.0.0.1:{port}/ws", additional_headers={"X-Forwarded-For": address}
            )

        async with as_client("9.9.9.9, 192.0.2.1") as one, as_client("9.9.9.9, 192.0.2.2") as two:
            for websocket in (one, two):
                await subscribed(websocket)
            with pytest.raises(InvalidStatus) as caught:
                await as_client("6.6.6.6, 192.0.2.2")
            assert caught.value.response.body == b"too many connections from 192.0.2.2\n"
        await until(lambda: not len(edge.connections))
        async with as_client("192.0.2.2") as again:
            await subscribed(again)

    with_edge(scenario, trusted_proxies=("127.0.0.0/8",), address_connections_max=1)
