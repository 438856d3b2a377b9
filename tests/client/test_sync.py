"""The sync client against a real edge over loopback."""

import asyncio
import threading

import pytest

from edgewise.client.sync import connect
from edgewise.edge.server.server import Edge
from edgewise.edge.topics.tree import Publication
from edgewise.errors import ProtocolError

WAIT_S = 10


@pytest.fixture
def served():
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    edge = Edge()
    port = asyncio.run_coroutine_threadsafe(edge.start(), loop).result(WAIT_S)
    yield edge, f"ws://127.0.0.1:{port}/ws"
    asyncio.run_coroutine_threadsafe(edge.stop(), loop).result(WAIT_S)
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


def test_a_loop_over_updates(served):
    edge, url = served
    edge.publish_threadsafe([Publication("a", {"v": 1}, 0, 1)]).wait(WAIT_S)
    with connect(url) as client:
        for update in client.subscribe("a"):
            assert update.value == {"v": 1}
            break
        assert client.value("a") == {"v": 1}
        quiet = client.subscribe("nothing/#")
        assert quiet.next(0.01) is None
        with pytest.raises(ProtocolError):
            client.request("nobody")
        quiet.close()


def test_nobody_there_is_said_in_time(monkeypatch):
    monkeypatch.setattr("edgewise.client.sync.OPEN_S", 0.05)
    with pytest.raises(ProtocolError, match="no edge answers"), connect("ws://127.0.0.1:1/ws"):
        pass
