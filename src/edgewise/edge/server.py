"""The edge as a server: one port for HTTP and WebSocket, and the doors for the node.

A flush happens when a socket can take bytes and its tick is due. `TCP_NOTSENT_LOWAT` and a
high-water mark of zero make the kernel's buffers part of the queue: a client that does not read
has at most one pending value per topic here and a few kilobytes below.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from edgewise.edge.config import EdgeConfig
from edgewise.edge.conflate import Outbox
from edgewise.edge.fanout import Fanout
from edgewise.edge.routes import Routes, Stats
from edgewise.edge.session import Session
from edgewise.edge.topics import Policy, TopicTree
from edgewise.edge.transports.connection import Connection
from edgewise.edge.transports.http import Request, Response
from edgewise.errors import ProtocolError, SetupError
from edgewise.wire import codec
from edgewise.wire.codes import Code

LOOPBACK = {"127.0.0.1", "::1", "localhost"}


def now_us() -> int:
    return time.time_ns() // 1000


@dataclass(frozen=True, slots=True)
class Publication:
    """One value on its way to a topic."""

    path: str
    value: Any
    offset: int
    at_us: int
    epoch: int = 0
    policy: Policy | None = None
    key: str = ""  # the row of a table topic
    remove: bool = False


class Edge:
    """Topics in, sessions out. All methods but the `_threadsafe` ones belong to the loop."""

    def __init__(self, config: EdgeConfig | None = None) -> None:
        self.config = config or EdgeConfig()
        self.config.validate()
        self.fanout = Fanout(TopicTree(self.config.topics_max))
        self.connections: dict[Outbox, Connection] = {}
        self._open: set[Connection] = set()
        self.now_us = now_us
        self._routes = Routes(self.config, self.fanout.tree, lambda: self.stats)
        self._server: asyncio.Server | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._flush_handle: asyncio.Handle | None = None
        self._sweep_handle: asyncio.Handle | None = None
        self._names = 0
        self._totals = Stats()

    async def start(self, host: str = "127.0.0.1", port: int = 0) -> int:
        """Listens, and answers the port it got."""
        if host not in LOOPBACK:
            raise SetupError(
                f"edge: {host} is not a loopback address and no authentication is configured"
            )
        self._loop = asyncio.get_running_loop()
        try:
            self._server = await self._loop.create_server(
                lambda: Connection(self), host, port, backlog=1024
            )
        except OSError as bad:
            raise SetupError(
                f"the edge cannot listen on {host}:{port}: {bad.strerror}; "
                "choose another port or stop the program that has it"
            ) from bad
        self._sweep_later()
        return int(self._server.sockets[0].getsockname()[1])

    async def stop(self) -> None:
        for handle in (self._flush_handle, self._sweep_handle):
            if handle is not None:
                handle.cancel()
        self._flush_handle = self._sweep_handle = None
        if self._server is not None:
            self._server.close()
        for connection in list(self._open):
            connection.goodbye(Code.SHUTDOWN)
        self._loop = None
        if self._server is not None:
            await self._server.wait_closed()
            self._server = None

    def publish(
        self,
        path: str,
        value: Any,
        *,
        offset: int,
        at_us: int,
        epoch: int = 0,
        policy: Policy | None = None,
        key: str = "",
    ) -> None:
        """The value of `path` is now `value`, the row at `offset`, captured at `at_us`."""
        try:
            codec.encode(value)
        except (TypeError, OverflowError, ValueError, RecursionError) as error:
            raise ProtocolError(Code.BAD_VALUE, f"'{path}' cannot carry this: {error}") from error
        self.fanout.publish(
            path,
            value,
            now_us=now_us(),
            offset=offset,
            at_us=at_us,
            epoch=epoch,
            policy=policy,
            key=key,
        )
        self.flush_soon()

    def remove(self, path: str) -> bool:
        removed = self.fanout.remove(path)
        self.flush_soon()
        return removed

    def publish_threadsafe(self, publications: Iterable[Publication]) -> threading.Event:
        """From any thread; the event is set when all are in the tree, so a feed can wait."""
        done = threading.Event()
        loop = self._loop
        if loop is None:
            raise SetupError("edge: publish before start")
        loop.call_soon_threadsafe(self._publish_all, tuple(publications), done)
        return done

    def value(self, path: str) -> Any:
        """The current value, None when there is no such topic."""
        topic = self.fanout.tree.get(path)
        return None if topic is None or topic.head is None else topic.head.value

    @property
    def stats(self) -> Stats:
        totals = self._totals
        live = [c.session.outbox for c in self.connections.values() if c.session]
        return Stats(
            connections=len(self._open),
            sessions=len(self.connections),
            topics=len(self.fanout.tree),
            published=self.fanout.published,
            updates_sent=totals.updates_sent + sum(o.updates_sent for o in live),
            bytes_sent=totals.bytes_sent + sum(c.bytes_sent for c in self.connections.values()),
            conflated=totals.conflated + sum(o.conflated for o in live),
            refused=totals.refused,
            pending=sum(o.pending for o in live),
        )

    def flush_soon(self) -> None:
        if self._flush_handle is None and self._loop is not None and self.fanout.dirty:
            self._flush_handle = self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._flush_handle = None
        dirty, self.fanout.dirty = self.fanout.dirty, {}
        for outbox in dirty:
            connection = self.connections.get(outbox)
            if connection is not None:
                connection.flush()

    def _publish_all(self, publications: tuple[Publication, ...], done: threading.Event) -> None:
        now = now_us()
        try:
            for p in publications:
                if p.remove:
                    self.fanout.remove(p.path)
                else:
                    self.fanout.publish(
                        p.path,
                        p.value,
                        now_us=now,
                        offset=p.offset,
                        at_us=p.at_us,
                        epoch=p.epoch,
                        policy=p.policy,
                        key=p.key,
                    )
        finally:
            done.set()
            self.flush_soon()

    def _sweep_later(self) -> None:
        if self._loop is not None:
            self._sweep_handle = self._loop.call_later(self.config.sweep_ms / 1000, self._sweep)

    def _sweep(self) -> None:
        now = now_us()
        self.fanout.sweep(now)
        for connection in list(self._open):
            connection.tick(now)
        self.flush_soon()
        self._sweep_later()

    def joined(self, connection: Connection) -> bool:
        self._open.add(connection)
        return len(self._open) <= self.config.connections_max

    def open_session(self, connection: Connection) -> Session | None:
        if len(self.connections) >= self.config.sessions_max:
            self._totals.refused += 1
            return None
        self._names += 1
        session = Session(f"s{self._names}", self.fanout, self.config, now_us())
        self.connections[session.outbox] = connection
        return session

    def left(self, connection: Connection) -> None:
        self._open.discard(connection)
        session = connection.session
        if session is not None:
            self.connections.pop(session.outbox, None)
            session.forget()
            self._totals.updates_sent += session.outbox.updates_sent
            self._totals.conflated += session.outbox.conflated
            self._totals.bytes_sent += connection.bytes_sent

    def answer(self, request: Request) -> Response:
        return self._routes.answer(request)
