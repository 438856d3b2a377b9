"""The edge as people use it: a node from the command line, topics of every kind, both ways of
asking, and guests with bad manners.
"""

import asyncio
import contextlib
import json
import re
import socket
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from tests.support.node_process import NodeProcess, post, topic
from tests.support.slow_link import Pipe

from edgewise.client.aio import connect
from edgewise.client.sync import connect as connect_in_threads
from edgewise.errors import ProtocolError
from edgewise.node.commands.publish_tail import tail
from edgewise.wire import codec, frames
from edgewise.wire.frames import How
from edgewise.wire.view import Removed, Staled, Update

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]

WAIT_S = 20
APP = """
define stream S (k string, v double, note string);
@sink(type='topic', path='rec/{k}', ttl='2 sec', stale='500 millisec')
define stream R (k string, v double);
@sink(type='topic', path='sum/{k}', conflate='merge(sum(v))')
define stream M (k string, v double);
@sink(type='topic', path='table', kind='table', key='{k}')
define stream T (k string, v double);
@sink(type='topic', path='series/{k}', kind='series', keep='50')
define stream H (k string, v double);
@sink(type='topic', path='blob/{k}', kind='blob', body='{note}')
define stream B (k string, note string);
@sink(type='topic', path='exact/{k}', conflate='off', recovery='precise', keep='1000')
define stream E (k string, v double);
from S select k, v insert into R;
from S select k, v insert into M;
from S select k, v insert into T;
from S select k, v insert into H;
from S select k, note insert into B;
from S select k, v insert into E;
"""
ANSWERS = """
from edgewise.edge.server.answers import answers

@answers("double/+")
async def double(caller, path, body):
    return {"twice": 2 * body, "path": path}

@answers("cancel")
async def cancel(caller, path, body):
    if not await caller.ask("confirm", body):
        raise ValueError("not confirmed")
    return "cancelled"
"""


def event(k, v):
    return {"data": {"k": k, "v": v, "note": f"{k}{v}"}}


class House:
    """A node with its addresses."""

    def __init__(self, folder, *arguments):
        (folder / "app.siddhi").write_text(APP)
        (folder / "answers.py").write_text(ANSWERS)
        self.node = NodeProcess(
            *("run", folder / "app.siddhi", "--data", folder / "data", "--engine", "embedded"),
            *("--http-port", "0", "--edge-port", "0", "--functions", folder / "answers.py"),
            *arguments,
        )
        self.http = self.node.edge
        self.url = self.http.replace("http", "ws", 1) + "/ws"

    def put(self, *events):
        post(f"{self.node.ingest}/streams/S", events)


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    house = House(tmp_path_factory.mktemp("house"))
    house.put(event("first", 1))
    topic(house.http, "table", lambda rows: "first" in rows)
    yield house
    house.node.stop()


def awaited(scenario):
    async def main():
        async with asyncio.timeout(WAIT_S):
            await scenario()

    asyncio.run(main())


async def until(condition):
    while not condition():  # noqa: ASYNC110 - what others do and nobody announces
        await asyncio.sleep(0.02)


async def updates(subscription, wanted):
    """Events until one of them is wanted."""
    seen = []
    async for found in subscription:
        seen.append(found)
        if wanted(found):
            return seen
    raise AssertionError(seen)


def test_topics_of_every_kind_come_at_once_then_as_they_change(house):
    async def scenario():
        async with connect(house.url) as edge:
            house.put(event("a", 1), event("b", 5), event("a", 2))
            topic(house.http, "exact/a", lambda value: value["v"] == 2)
            everything = edge.subscribe("#")
            kinds = ("rec", "sum", "series", "blob", "exact")
            paths = {"table", *(f"{kind}/{k}" for kind in kinds for k in "ab")}
            await updates(everything, lambda u: paths.discard(u.path) or not paths)
            assert edge.value("rec/a") == {"k": "a", "v": 2.0}
            assert edge.value("sum/a")["v"] == 3.0
            assert edge.value("table")["b"] == {"k": "b", "v": 5.0}
            assert [fields["v"] for _, _, fields in edge.value("series/a")] == [1.0, 2.0]
            assert edge.value("blob/a") == b"a2"
            house.put(event("a", 4))
            seen = await updates(everything, lambda u: u.path == "exact/a")
            assert {u.meta.count for u in seen} == {1}

    awaited(scenario)


def test_a_source_that_falls_silent_is_stale_then_gone(house):
    async def scenario():
        async with connect(house.url) as edge:
            house.put(event("s", 1))
            seen = await updates(edge.subscribe("rec/s"), lambda u: isinstance(u, Removed))
            kinds = [type(u) for u in seen]
            assert kinds == [Update, Staled, Removed]
            assert seen[1].since_us > 0

    awaited(scenario)


def test_curl_tail_metrics_and_the_edge_about_itself(house):
    house.put(event("c", 7))
    assert topic(house.http, "table", lambda rows: "c" in rows)["c"]["v"] == 7.0
    with urllib.request.urlopen(f"{house.http}/topics/exact/c") as answer:
        assert json.load(answer) == {"k": "c", "v": 7.0}
        assert re.fullmatch(r"\d+:\d+", answer.headers["x-edgewise-position"])
    (line,) = tail(house.url, "exact/c", 1)
    assert json.loads(line)["how"] == "snapshot"

    async def scenario():
        async with connect(house.url, client="walker") as edge:
            live = edge.subscribe("exact/#")
            about = edge.subscribe("$sys/#")
            await updates(live, lambda u: u.path == "exact/c")
            seen = {}

            def whole(update):
                if isinstance(update, Update):
                    seen[update.path] = update.value
                mine = [
                    value
                    for path, value in seen.items()
                    if path.startswith("$sys/sessions/") and value["client"] == "walker"
                ]
                return mine and "$sys/topics/exact" in seen and "$sys/edge" in seen

            await updates(about, whole)
            (mine,) = [v for v in seen.values() if v.get("client") == "walker"]
            told = {"updates_per_s", "bytes_per_s", "conflated", "pending", "rtt_ms"}
            assert told | {"drain_bytes_per_s", "bytes_below", "age_p99_ms"} <= set(mine)
            group = {"updates_per_s", "bytes", "conflated", "pending", "age_p50_ms"}
            assert group <= set(seen["$sys/topics/exact"])
            house.put(event("c", 8))
            page = ""

            def measured():
                nonlocal page
                with urllib.request.urlopen(f"{house.http}/metrics") as answer:
                    page = answer.read().decode()
                trips = re.findall(r"session_round_trip_seconds{.*walker.*} (\S+)", page)
                return "session_age_seconds_bucket{" in page and float(trips[0]) > 0

            await until(measured)
            for name in (
                *("edge_sessions ", "edge_age_seconds_bucket{", "edge_topic_pending{"),
                *("edge_topic_bytes_total{", "edge_topic_conflated_total{"),
                *("edge_session_updates_total{", "edge_session_pending{"),
                *("edge_session_drain_bytes_per_second{", "edge_session_bytes_below{"),
                *("edge_session_round_trip_seconds{", "edge_session_conflated_total{"),
            ):
                assert f"edgewise_{name}" in page, name

    awaited(scenario)


def test_a_rate_a_window_and_the_end_of_a_series_are_for_the_asking(house):
    async def scenario():
        async with connect(house.url) as edge:
            house.put(*(event("w", v) for v in range(1, 11)))
            topic(house.http, "exact/w", lambda value: value["v"] == 10)
            (first,) = await updates(edge.subscribe("series/w", last=3), lambda _: True)
            assert [fields["v"] for _, _, fields in first.value] == [8.0, 9.0, 10.0]
        async with connect(house.url) as edge:
            window = edge.subscribe("rec/w", rate=2, window=["mean", "min", "max", "count"])
            await updates(window, lambda _: True)
            for v in (1, 2, 6):
                house.put(event("w", v))
            seen = await updates(window, lambda u: u.value["v"]["max"] == 6.0)
            counted = [u.value["v"]["count"] for u in seen]
            assert sum(counted) == 3
            assert len(seen) < 3

    awaited(scenario)


def test_publishing_and_asking_go_both_ways_on_one_session(house):
    with connect_in_threads(house.url) as edge:
        edge.publish("chat/room", {"text": "hello"})
        assert topic(house.http, "chat/room", bool) == {"text": "hello"}
        edge.on_request("confirm", lambda body: body == "yes")
        assert edge.request("double/x", 21) == {"twice": 42, "path": "double/x"}
        assert edge.request("cancel", "yes") == "cancelled"
        with pytest.raises(ProtocolError, match="not confirmed"):
            edge.request("cancel", "no")
        edge.publish("chat/room", None, remove=True)
        with pytest.raises(urllib.error.HTTPError):
            urllib.request.urlopen(f"{house.http}/topics/chat/room")


@pytest.mark.parametrize("transport", ["websocket", "sse", "poll"])
def test_who_was_away_is_told_what_it_got(house, transport):
    async def scenario():
        pipe = Pipe(int(house.http.rsplit(":", 1)[1]))
        url, k = f"ws://127.0.0.1:{await pipe.start()}/ws", f"r-{transport}"
        async with connect(url, transports=(transport,)) as edge:
            house.put(event(k, 0))
            exact, state = edge.subscribe(f"exact/{k}"), edge.subscribe(f"sum/{k}")
            await updates(exact, lambda u: u.value["v"] == 0.0)
            await updates(state, lambda _: True)
            pipe.cut()
            house.put(*(event(k, v) for v in range(1, 6)))
            await until(lambda: edge.state != "open")
            topic(house.http, f"exact/{k}", lambda value: value["v"] == 5.0)
            pipe.mend()
            replayed = await updates(exact, lambda u: u.value["v"] == 5.0)
            assert [u.value["v"] for u in replayed] == [1.0, 2.0, 3.0, 4.0, 5.0]
            assert {u.meta.how for u in replayed} == {How.REPLAY}
            (caught,) = await updates(state, lambda _: True)
            assert (caught.meta.how, caught.value["v"]) == (How.CATCH_UP, 15.0)
        await pipe.stop()

    awaited(scenario)


def rss_kib(pid):
    return int(re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())[1])


UPGRADE = (
    b"GET /ws HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)


def ws(frame):
    data = codec.encode(frame)
    size = len(data)
    head = bytes([0x82, 0x80 | (size if size < 126 else 126 if size < 65536 else 127)])
    if size >= 126:
        head += size.to_bytes(2 if size < 65536 else 8, "big")
    return head + b"\0\0\0\0" + data


def guest(port, *said, receive_bytes=0):
    sock = socket.socket()
    if receive_bytes:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
    sock.connect(("127.0.0.1", port))
    sock.sendall(UPGRADE + ws(frames.Hello(1)) + b"".join(map(ws, said)))
    sock.settimeout(WAIT_S)
    return sock


def test_guests_with_bad_manners_cost_bounded_memory_and_the_others_feel_nothing(house):
    port = int(house.http.rsplit(":", 1)[1])
    all_of_it = (frames.Subscribe(1, "#"), frames.Subscribe(2, "$sys/#"))
    with contextlib.ExitStack() as leaving, connect_in_threads(house.url) as witness:
        feed = witness.subscribe("chat/witness")
        pid = house.node.process.pid
        quiet_kib = rss_kib(pid)
        for _ in range(20):  # never read
            leaving.enter_context(guest(port, *all_of_it, receive_bytes=2048))
        leaving.enter_context(guest(port, frames.Subscribe(1, "x" * 1_000_000)))
        slow = leaving.enter_context(guest(port, *all_of_it, receive_bytes=2048))
        for _ in range(200):
            leaving.enter_context(guest(port, frames.Subscribe(1, "#")))
        ages = []
        for number in range(20):
            house.put(*(event(f"k{i}", number) for i in range(10)))
            began = time.monotonic()
            witness.publish("chat/witness", {"n": number})
            while feed.next(WAIT_S).value["n"] != number:
                pass
            ages.append(time.monotonic() - began)
            if number % 10 == 0:
                assert slow.recv(1)  # one byte at a time
        grown_kib = rss_kib(pid) - quiet_kib
        with urllib.request.urlopen(f"{house.http}/healthz") as answer:
            assert json.load(answer)["sessions"] >= 200
    assert grown_kib < 64 * 1024, grown_kib
    assert sorted(ages)[len(ages) // 2] < 1.0
