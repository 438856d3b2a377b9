"""Run one AMQP 1.0 connection with one link, in a thread. The only module that imports Proton.

A broken connection is replaced as a whole: links, credit and deliveries of the old one mean
nothing to the new one. `generation` numbers the connections, so that late answers of an old one
are recognised. Used by `amqp1`.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, Protocol
from urllib.parse import unquote, urlsplit

import proton
from proton.handlers import MessagingHandler
from proton.reactor import ApplicationEvent, AtLeastOnce, AtMostOnce, Container, EventInjector

from edgewise.errors import SetupError

logger = logging.getLogger(__name__)
CONNECT_S = 10.0
CLOSE_S = 1.0
HEARTBEAT_S = 10.0
RETRY_S = (0.1, 0.5, 2.0, 5.0)
PORTS = {"amqp": 5672, "amqps": 5671}


class LinkHandler(Protocol):
    """The source or sink of a link; called in the thread of the reactor."""

    def link(self, container: Any, connection: Any) -> Any: ...
    def attached(self, link: Any) -> None: ...
    def event(self, name: str, event: Any) -> None: ...


class Peer(MessagingHandler):
    """One connection with one link, made again when it breaks."""

    def __init__(self, options: Mapping[str, str], handler: LinkHandler) -> None:
        super().__init__(prefetch=0, auto_accept=False)
        self._options = options
        self._handler = handler
        self._container = Container(self)
        self._container.container_id = f"edgewise-{threading.get_ident():x}-{id(self):x}"
        self._injector = EventInjector()
        self._connection: Any = None
        self._first: Future[None] = Future()
        self._attempts = 0
        self._closing = False
        self.generation = 0  # grows with every connection
        self.link: Any = None  # None while there is none
        self._thread = threading.Thread(target=self._run, name="edgewise-amqp1", daemon=True)

    async def open(self) -> None:
        """Returns when the link is up; SetupError where no broker answers or it refuses."""
        url = urlsplit(self._options["url"])
        where = f"{url.hostname}:{url.port or PORTS[url.scheme]}"
        self._thread.start()
        try:
            async with asyncio.timeout(CONNECT_S):
                await asyncio.wrap_future(self._first)
        except (OSError, TimeoutError) as error:
            await self.close()
            raise SetupError(f"no AMQP 1.0 broker at {where}: {error or 'no answer'}") from error
        except SetupError as error:
            await self.close()
            raise SetupError(f"{where}, address '{self._options['address']}': {error}") from error

    async def close(self) -> None:
        if self._thread.is_alive():
            self.call(self._end)
            await asyncio.to_thread(self._thread.join, 2 * CLOSE_S)

    def call(self, work: Callable[[], None]) -> None:
        """Run `work` in the thread of the reactor, soon."""
        self._injector.trigger(ApplicationEvent("work", subject=work))

    # --- in the thread of the reactor

    def _run(self) -> None:
        with suppress(KeyboardInterrupt):
            self._container.run()

    def _end(self) -> None:
        """Close the connection, and stop the reactor even where the broker does not answer."""
        self._closing = True
        self._injector.close()
        if self._connection is None:
            self._container.stop()
        else:
            self._connection.close()
            self._container.schedule(CLOSE_S, self)

    def _connect(self) -> None:
        url = urlsplit(self._options["url"])
        self.generation += 1
        arguments: dict[str, Any] = {}
        if url.username:
            arguments = {"user": unquote(url.username), "password": unquote(url.password or "")}
        if url.scheme == "amqps":
            arguments["ssl_domain"] = _build_ssl_domain(self._options["ca"])
        self._connection = self._container.connect(
            f"{url.scheme}://{url.hostname}:{url.port or PORTS[url.scheme]}",
            reconnect=False,
            heartbeat=HEARTBEAT_S,
            allow_insecure_mechs=True,  # without TLS a password is plain, as with 0.9.1
            **arguments,
        )
        self._handler.link(self._container, self._connection)

    def _failed(self, why: Exception) -> None:
        if not self._first.done():
            self._first.set_exception(why)
        elif not self._closing:
            logger.warning("AMQP 1.0: %s; connecting again", why)

    def on_start(self, event: Any) -> None:
        del event
        self._container.selectable(self._injector)
        self._connect()

    def on_work(self, event: Any) -> None:
        event.subject()

    def on_link_opened(self, event: Any) -> None:
        terminus = event.link.remote_source if event.link.is_receiver else event.link.remote_target
        if terminus.address is None:
            return  # refused: the reason comes with the detach
        self._attempts = 0
        self.link = event.link
        self._handler.attached(event.link)
        if not self._first.done():
            self._first.set_result(None)

    def on_link_error(self, event: Any) -> None:
        self._on_remote_close(event.link, event.connection)

    def on_session_error(self, event: Any) -> None:
        self._on_remote_close(event.session, event.connection)

    def on_connection_error(self, event: Any) -> None:
        self._on_remote_close(event.connection, event.connection)

    def _on_remote_close(self, ended: Any, connection: Any) -> None:
        condition = ended.remote_condition
        self._failed(SetupError(condition.description if condition else "closed by the broker"))
        connection.close()

    def on_transport_error(self, event: Any) -> None:
        condition = event.transport.condition
        self._failed(
            ConnectionError(condition.description if condition else "the connection broke")
        )

    def on_transport_closed(self, event: Any) -> None:
        if event.connection is not None and event.connection != self._connection:
            return
        self.link = self._connection = None
        self._handler.event("lost", event)
        if self._closing:
            self._container.stop()
        else:
            wait = RETRY_S[min(self._attempts, len(RETRY_S) - 1)]
            self._attempts += 1
            self._container.schedule(wait, self)

    def on_timer_task(self, event: Any) -> None:
        del event
        if self._closing:
            self._container.stop()
        elif self._connection is None:
            self._connect()

    def on_message(self, event: Any) -> None:
        self._handler.event("message", event)

    def on_sendable(self, event: Any) -> None:
        self._handler.event("sendable", event)

    def on_accepted(self, event: Any) -> None:
        self._handler.event("accepted", event)

    def on_rejected(self, event: Any) -> None:
        self._handler.event("rejected", event)

    def on_released(self, event: Any) -> None:
        self._handler.event("released", event)


def _build_ssl_domain(ca: str) -> Any:
    domain = proton.SSLDomain(proton.SSLDomain.MODE_CLIENT)
    domain.set_trusted_ca_db(ca or ssl.get_default_verify_paths().cafile)
    domain.set_peer_authentication(proton.SSLDomain.VERIFY_PEER_NAME)
    return domain


def create_receiver(container: Any, connection: Any, address: str, *, settled: bool) -> Any:
    """`settled`: the broker forgets a message as it sends it."""
    once = AtMostOnce() if settled else AtLeastOnce()
    return container.create_receiver(connection, address, options=once)


def create_sender(container: Any, connection: Any, address: str) -> Any:
    return container.create_sender(connection, address, options=AtLeastOnce())


def accept(delivery: Any) -> None:
    delivery.update(proton.Delivery.ACCEPTED)
    delivery.settle()


def build_message(payload: bytes, name: str, subject: str | None) -> Any:
    """`inferred` makes the payload a data section, which receivers of any version understand."""
    return proton.Message(body=payload, durable=True, id=name, subject=subject, inferred=True)
