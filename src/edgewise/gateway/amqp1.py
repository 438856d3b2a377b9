"""AMQP 1.0: a link from a node of the broker as a source, one to it as a sink.

The rules are those of 0.9.1. A source accepts a message when the log has it; a broker that keeps
messages until then loses none. A sink is at the next row when the broker accepted the last one.

The client is compiled where it is installed, so it is an extra (`edgewise[amqp1]`) and only loaded
by apps that use it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from edgewise.errors import SetupError
from edgewise.event.clock import Clock
from edgewise.event.schema import Schema
from edgewise.gateway.drain import Cursor, Drain, Message, Undelivered
from edgewise.gateway.feed import Feed
from edgewise.gateway.refusal import refused_body
from edgewise.gateway.renderers import renderer_of
from edgewise.gateway.spec import Guarantee, MapSpec, SinkSpec, SourceSpec
from edgewise.log.api import LogReader, LogWriter

if TYPE_CHECKING:
    from edgewise.gateway.amqp1_peer import Peer

CREDIT = 500  # messages the broker sends ahead of our acceptances
CREDIT_STEP = 100  # given back at once
CONFIRM_S = 10.0


def _peer(options: Mapping[str, str], door: Any) -> Peer:
    if find_spec("proton") is None:
        raise SetupError(
            "AMQP 1.0 needs the package python-qpid-proton: pip install 'edgewise[amqp1]' (it is "
            "compiled there and needs a C compiler)"
        )
    from edgewise.gateway.amqp1_peer import Peer

    return Peer(options, door)


def _payload(body: Any) -> bytes | None:
    """Bytes of a data section, or a text; other values are not for our mappers."""
    if isinstance(body, str):
        return body.encode()
    return bytes(body) if isinstance(body, bytes | bytearray | memoryview) else None


class Amqp1Source:
    def __init__(self, spec: SourceSpec, schema: Schema, writer: LogWriter, clock: Clock) -> None:
        self._address = spec.options["address"]
        self._before = spec.options["delivery"] == Guarantee.AT_MOST_ONCE.value
        self._feed = Feed(spec, schema, writer, clock)
        self.stats = self._feed.stats
        self._peer = _peer(spec.options, self)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._owed = 0  # credit to give back

    async def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        await self._peer.open()

    async def stop(self) -> None:
        await self._feed.close()
        await self._peer.close()

    # --- in the thread of the reactor

    def link(self, container: Any, connection: Any) -> Any:
        from edgewise.gateway.amqp1_peer import receiver

        return receiver(container, connection, self._address, settled=self._before)

    def attached(self, link: Any) -> None:
        self._owed = 0
        link.flow(CREDIT)

    def event(self, name: str, event: Any) -> None:
        if name == "message" and self._loop is not None:
            taken = self._take(event.delivery, _payload(event.message.body), self._peer.life)
            with suppress(RuntimeError):  # the loop is closed: the broker keeps the message
                asyncio.run_coroutine_threadsafe(taken, self._loop)

    def _accept(self, delivery: Any, life: int) -> None:
        peer = self._peer
        if life != peer.life or peer.link is None:
            return  # of a connection that broke: the broker sends it again
        if not self._before:
            from edgewise.gateway.amqp1_peer import accept

            accept(delivery)
        self._owed += 1
        if self._owed >= CREDIT_STEP:
            peer.link.flow(self._owed)
            self._owed = 0

    # --- in the event loop

    async def _take(self, delivery: Any, payload: bytes | None, life: int) -> None:
        def durable() -> None:
            self._peer.call(lambda: self._accept(delivery, life))

        if payload is None:
            reason = "the body of the message is neither bytes nor text"
            self._feed.refuse(refused_body(400, "malformed", reason))
            durable()
        else:
            await self._feed.offer(payload, durable)


class Amqp1Sink:
    def __init__(self, spec: SinkSpec, schema: Schema, reader: LogReader, cursor: Cursor) -> None:
        self._address = spec.options["address"]
        self._stream = spec.stream
        subject = spec.options["subject"]
        self._subject = (
            renderer_of(MapSpec("text", {"template": subject}), schema) if subject else None
        )
        self._drain = Drain(spec, schema, reader, cursor)
        self.stats = self._drain.stats
        self._peer = _peer(spec.options, self)
        self._waiting: deque[Any] = deque()  # messages without credit
        self._open = 0  # sent, not yet accepted
        self._done: Future[None] | None = None

    async def start(self) -> None:
        await self._peer.open()
        self._drain.start(self._deliver)

    async def stop(self) -> None:
        await self._drain.stop()
        await self._peer.close()

    async def _deliver(self, messages: list[Message]) -> None:
        done: Future[None] = Future()
        bodies = [self._message(message) for message in messages]
        self._peer.call(lambda: self._begin(bodies, done))
        try:
            async with asyncio.timeout(CONFIRM_S):
                await asyncio.wrap_future(done)
        except TimeoutError:
            self._peer.call(lambda: self._settle("no answer"))
            raise Undelivered("the broker did not confirm: no answer") from None

    def _message(self, message: Message) -> Any:
        from edgewise.gateway.amqp1_peer import message as message_of

        # The id lets a receiver drop what it has seen: an offset is never used twice.
        name = f"{self._stream}/{message.offset}"
        subject = self._subject(0, message.row).decode() if self._subject else None
        return message_of(message.payload, name, subject)

    # --- in the thread of the reactor

    def link(self, container: Any, connection: Any) -> Any:
        from edgewise.gateway.amqp1_peer import sender

        return sender(container, connection, self._address)

    def attached(self, link: Any) -> None:
        del link

    def event(self, name: str, event: Any) -> None:
        if name == "sendable":
            self._send()
        elif name == "accepted":
            self._open -= 1
            if not self._open and not self._waiting:
                self._settle("")
        elif name in {"rejected", "released"}:
            said = event.delivery.remote.condition
            self._settle(f"{name} by the broker{f': {said.description}' if said else ''}")
        elif name == "lost":
            self._settle("the connection to the broker is broken")

    def _begin(self, bodies: list[Any], done: Future[None]) -> None:
        self._waiting.extend(bodies)
        self._done = done
        if self._peer.link is None:
            self._settle("the connection to the broker is broken")
        self._send()

    def _send(self) -> None:
        link = self._peer.link
        while link is not None and self._waiting and link.credit > 0:
            link.send(self._waiting.popleft())
            self._open += 1

    def _settle(self, fault: str) -> None:
        """The delivery under way is over; what is answered later belongs to nobody."""
        done, self._done = self._done, None
        self._waiting.clear()
        if fault and self._open and self._peer.link is not None:
            self._peer.link.connection.close()  # late answers must not count for the next rows
        self._open = 0
        if done is not None and not done.cancelled():
            with suppress(InvalidStateError):
                if fault:
                    done.set_exception(Undelivered(fault))
                else:
                    done.set_result(None)
