"""Connect to AMQP 1.0 brokers: a link from a node of the broker as a source, to one as a sink.

The rules are those of `amqp`. A source accepts a message when the log has it, and a broker that
keeps messages until then loses none. A sink goes on to the next rows when the broker has accepted
the last ones. The client library is compiled when it is installed, so it is an extra
(`edgewise[amqp1]`), and only apps that use it load it. Loaded by `connectors`.
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
from edgewise.event.clock import SystemClock
from edgewise.event.schema import Schema
from edgewise.gateway.refusal import refuse_request
from edgewise.gateway.renderers import build_renderer
from edgewise.gateway.sink_reader import Message, SinkCursor, SinkReader, Undelivered
from edgewise.gateway.source_writer import SourceWriter
from edgewise.gateway.spec import Guarantee, MapSpec, SinkSpec, SourceSpec
from edgewise.log.api import LogReader, LogWriter

if TYPE_CHECKING:
    from edgewise.gateway.amqp1_peer import Peer

CREDIT = 500  # messages the broker sends ahead of our acceptances
CREDIT_STEP = 100  # given back at once
CONFIRM_S = 10.0


def _open_peer(options: Mapping[str, str], handler: Any) -> Peer:
    if find_spec("proton") is None:
        raise SetupError(
            "AMQP 1.0 needs the package python-qpid-proton: pip install 'edgewise[amqp1]' (it is "
            "compiled there and needs a C compiler)"
        )
    from edgewise.gateway.amqp1_peer import Peer

    return Peer(options, handler)


def _read_payload(body: Any) -> bytes | None:
    """The bytes of a data section or text; None for other values, which mappers cannot read."""
    if isinstance(body, str):
        return body.encode()
    return bytes(body) if isinstance(body, bytes | bytearray | memoryview) else None


class Amqp1Source:
    def __init__(
        self, spec: SourceSpec, schema: Schema, writer: LogWriter, clock: SystemClock
    ) -> None:
        self._address = spec.options["address"]
        self._at_most_once = spec.options["delivery"] == Guarantee.AT_MOST_ONCE.value
        self._ingest = SourceWriter(spec, schema, writer, clock)
        self.stats = self._ingest.stats
        self._peer = _open_peer(spec.options, self)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._credit_to_return = 0  # credit to give back

    async def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        await self._peer.open()

    async def stop(self) -> None:
        await self._ingest.close()
        await self._peer.close()

    # --- in the thread of the reactor

    def link(self, container: Any, connection: Any) -> Any:
        from edgewise.gateway.amqp1_peer import create_receiver

        return create_receiver(container, connection, self._address, settled=self._at_most_once)

    def attached(self, link: Any) -> None:
        self._credit_to_return = 0
        link.flow(CREDIT)

    def event(self, name: str, event: Any) -> None:
        if name == "message" and self._loop is not None:
            work = self._accept_message(
                event.delivery, _read_payload(event.message.body), self._peer.generation
            )
            with suppress(RuntimeError):  # the loop is closed: the broker keeps the message
                asyncio.run_coroutine_threadsafe(work, self._loop)

    def _accept(self, delivery: Any, generation: int) -> None:
        peer = self._peer
        if generation != peer.generation or peer.link is None:
            return  # the connection broke: the broker sends it again
        if not self._at_most_once:
            from edgewise.gateway.amqp1_peer import accept

            accept(delivery)
        self._credit_to_return += 1
        if self._credit_to_return >= CREDIT_STEP:
            peer.link.flow(self._credit_to_return)
            self._credit_to_return = 0

    # --- in the event loop

    async def _accept_message(self, delivery: Any, payload: bytes | None, generation: int) -> None:
        def durable() -> None:
            self._peer.call(lambda: self._accept(delivery, generation))

        if payload is None:
            reason = "the body of the message is neither bytes nor text"
            self._ingest.refuse(refuse_request(400, "malformed", reason))
            durable()
        else:
            await self._ingest.offer(payload, durable)


class Amqp1Sink:
    def __init__(
        self, spec: SinkSpec, schema: Schema, reader: LogReader, cursor: SinkCursor
    ) -> None:
        self._address = spec.options["address"]
        self._stream = spec.stream
        subject = spec.options["subject"]
        self._subject = (
            build_renderer(MapSpec("text", {"template": subject}), schema) if subject else None
        )
        self._reader = SinkReader(spec, schema, reader, cursor)
        self.stats = self._reader.stats
        self._peer = _open_peer(spec.options, self)
        self._waiting: deque[Any] = deque()  # messages without credit
        self._unanswered = 0  # sent, not yet accepted
        self._done: Future[None] | None = None

    async def start(self) -> None:
        await self._peer.open()
        self._reader.start(self._deliver)

    async def stop(self) -> None:
        await self._reader.stop()
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
        from edgewise.gateway.amqp1_peer import build_message

        # The id lets a receiver drop what it has seen: an offset is never used twice.
        name = f"{self._stream}/{message.offset}"
        subject = self._subject(0, message.row).decode() if self._subject else None
        return build_message(message.payload, name, subject)

    # --- in the thread of the reactor

    def link(self, container: Any, connection: Any) -> Any:
        from edgewise.gateway.amqp1_peer import create_sender

        return create_sender(container, connection, self._address)

    def attached(self, link: Any) -> None:
        del link

    def event(self, name: str, event: Any) -> None:
        if name == "sendable":
            self._send()
        elif name == "accepted":
            self._unanswered -= 1
            if not self._unanswered and not self._waiting:
                self._settle("")
        elif name in {"rejected", "released"}:
            condition = event.delivery.remote.condition
            self._settle(
                f"{name} by the broker{f': {condition.description}' if condition else ''}"
            )
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
            self._unanswered += 1

    def _settle(self, failure: str) -> None:
        """End the delivery in progress; answers that come later are ignored."""
        done, self._done = self._done, None
        self._waiting.clear()
        if failure and self._unanswered and self._peer.link is not None:
            self._peer.link.connection.close()  # late answers must not count for the next rows
        self._unanswered = 0
        if done is not None and not done.cancelled():
            with suppress(InvalidStateError):
                if failure:
                    done.set_exception(Undelivered(failure))
                else:
                    done.set_result(None)
