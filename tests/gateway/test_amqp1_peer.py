"""The client is there with the set-up of integration tests only: it is imported in the tests."""

import asyncio

import pytest
from tests.support.brokers import free_port

from edgewise.errors import SetupError

pytestmark = pytest.mark.integration


class Nothing:
    def link(self, container, connection):
        return container.create_receiver(connection, "q")

    def attached(self, _link):
        raise AssertionError("there is nobody")

    def event(self, name, event):
        pass


def test_a_peer_that_found_nobody_leaves_no_thread():
    from edgewise.gateway.amqp1_peer import Peer

    async def scenario():
        options = {"url": f"amqp://127.0.0.1:{free_port()}", "ca": "", "address": "q"}
        peer = Peer(options, Nothing())
        with pytest.raises(SetupError, match=r"no AMQP 1\.0 broker"):
            await peer.open()
        return peer

    assert not asyncio.run(scenario())._thread.is_alive()


def test_a_message_names_its_row():
    from edgewise.gateway.amqp1_peer import build_message

    made = build_message(b"{}", "S/7", "v.1")
    assert (made.id, made.subject, made.durable, bytes(made.body)) == ("S/7", "v.1", True, b"{}")
