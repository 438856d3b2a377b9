import asyncio
import resource
import socket
import time
from contextlib import ExitStack, suppress
from urllib.parse import urlsplit

from tests.support.node_process import NodeProcess, post, topic

from edgewise.node.upkeep import file_limit
from edgewise.node.upkeep.file_limit import (
    CHECK_EVERY_S,
    FileLimit,
    bound_connections,
    watch_file_limit,
)


def test_a_node_near_its_limit_says_so_once_and_when_it_is_over():
    limit = FileLimit()
    assert not limit.describe(89, 100)
    assert "90 of 100" in limit.describe(90, 100)
    assert not limit.describe(99, 100)
    assert not limit.describe(85, 100)
    assert "79 of 100" in limit.describe(79, 100)
    assert not limit.describe(79, 100)


def test_the_files_of_this_process_are_counted(monkeypatch):
    said = []
    monkeypatch.setattr(file_limit.resource, "getrlimit", lambda _which: (5, 5))
    monkeypatch.setattr(file_limit, "CHECK_EVERY_S", 0)

    async def scenario():
        watching = asyncio.create_task(watch_file_limit(said.append))
        async with asyncio.timeout(20):
            while not said:  # noqa: ASYNC110  every turn is a check
                await asyncio.sleep(0)
        watching.cancel()
        await asyncio.wait([watching])

    asyncio.run(scenario())
    assert "of 5 files and connections are open" in said[0]


def test_a_process_without_a_free_descriptor_still_says_so(monkeypatch):
    def full(_path):
        raise OSError(24, "Too many open files")

    said = []
    monkeypatch.setattr(file_limit.os, "listdir", full)

    async def scenario():
        watching = asyncio.create_task(watch_file_limit(said.append))
        await asyncio.sleep(0)
        watching.cancel()
        await asyncio.wait([watching])

    asyncio.run(scenario())
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    assert f"{soft} of {soft} files" in said[0]


def test_the_ports_leave_descriptors_for_logs_and_lease():
    assert bound_connections(4096, 1_000_000) == 4096
    assert bound_connections(4096, 1024) == 488
    assert bound_connections(4096, 64) == 8
    assert bound_connections(4096, 16) == 4


def test_a_node_with_few_descriptors_goes_on_under_many_callers(tmp_path):
    """100 connections where 64 files may be open: callers are turned away, the lease is kept."""
    app = tmp_path / "app.siddhi"
    app.write_text(
        "@source(type='http', @map(type='json')) define stream S (v int); "
        "@sink(type='topic', path='o') define stream O (v int); from S select v insert into O;"
    )
    ports = ("--http-port", 0, "--edge-port", 0)
    data = ("--data", tmp_path / "data")
    node = NodeProcess("run", app, "--engine", "embedded", *ports, *data, files_max=64)
    try:
        addresses = [("127.0.0.1", urlsplit(url).port) for url in (node.ingest, node.edge)]
        with ExitStack() as callers:
            for address in addresses * 50:
                with suppress(OSError):
                    callers.enter_context(socket.create_connection(address, 5))
            time.sleep(2 * CHECK_EVERY_S)  # a lease is renewed meanwhile, or lost
        post(f"{node.ingest}/streams/S", [{"v": 7}])
        assert topic(node.edge, "o", lambda value: value["v"] == 7)
        assert not [line for line in node.lines if "Too many open files" in line]
    finally:
        node.stop()
