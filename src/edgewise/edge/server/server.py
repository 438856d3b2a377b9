"""Serve topics on one port for HTTP and WebSocket, and take publications from the node.

A flush happens when a socket can take bytes and its tick is due. `TCP_NOTSENT_LOWAT` and a
high-water mark of zero make the kernel's buffers part of the queue: a client that does not read
has at most one pending value per topic here and a few kilobytes in the kernel. Nodes, edge workers
and tests start an `Edge`.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import secrets
import ssl
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from http import HTTPStatus
from typing import Any

from msgspec import structs

from edgewise.edge.access.auth import AccessControl, demand_authentication
from edgewise.edge.config import EdgeConfig
from edgewise.edge.metrics.reports import SystemTopics
from edgewise.edge.metrics.telemetry import EdgeStats, ReportedSession, SessionTotals, Telemetry
from edgewise.edge.server.admission import AdmissionQueue, ConnectionTable
from edgewise.edge.server.answers import Handler, RequestHandler
from edgewise.edge.server.busy_poll import BusyPoll
from edgewise.edge.server.flush_scheduler import FlushScheduler, now_us
from edgewise.edge.server.publish import describe_change, describe_removal, publish_frame
from edgewise.edge.server.requests import RequestDispatcher
from edgewise.edge.server.routes import HttpRoutes
from edgewise.edge.server.sweeper import SWEEP_SLICE, Carrier, Sweeper
from edgewise.edge.sessions.encode import show_value
from edgewise.edge.sessions.fanout import Fanout
from edgewise.edge.sessions.outbox import Outbox
from edgewise.edge.sessions.session import Session
from edgewise.edge.topics.merges import Merge
from edgewise.edge.topics.tree import HistoryPage, PageRequest, Policy, Publication, TopicTree
from edgewise.edge.transports.connection import Connection
from edgewise.edge.transports.emulated import (
    PollConnection,
    overloaded_response,
    unknown_session_response,
    unpack_frames,
)
from edgewise.edge.transports.http import HttpRequest, HttpResponse, problem_response
from edgewise.edge.transports.websocket import Packer
from edgewise.errors import ProtocolError, SetupError
from edgewise.wire import codec, frames
from edgewise.wire.codes import ProtocolCode

_log = logging.getLogger("edgewise.edge")

SESSIONS_REPORTED_MAX = 200


class Edge:
    """Topics in, sessions out. All methods but the `_threadsafe` ones belong to the loop."""

    def __init__(self, config: EdgeConfig | None = None) -> None:
        self.config = config or EdgeConfig()
        self.config.validate()
        self.fanout = Fanout(TopicTree(self.config.topics_max))
        self.access = AccessControl(
            self.config.verifier,
            self.config.origins,
            self.config.principal_sessions_max,
            revoked=self.config.revoked,
            report=partial(_log.warning, "refused a request: %s"),
        )
        self.telemetry = Telemetry()
        self.now_us = now_us
        self.pack = Packer()
        self.carriers: dict[Outbox, Carrier] = {}
        self.flushes = FlushScheduler(self.fanout, self.carriers, self.config.tick_ms * 1000)
        self.flush_due, self.flush_soon = self.flushes.due, self.flushes.soon
        self.flush_again = self.flushes.again
        self._busy_poll = BusyPoll()
        self.record_activity = self._busy_poll.record_activity
        self._by_name: dict[str, Carrier] = {}
        self.connections = ConnectionTable(self.config)
        self.add_connection, self.check_request = (
            self.connections.add_connection,
            self.connections.check_request,
        )
        self.admit = AdmissionQueue().admit
        self._polls: set[PollConnection] = set()
        self._calls = RequestDispatcher(self.flush_soon)
        self._routes = HttpRoutes(
            self.config,
            self.fanout.tree,
            self.access,
            self.telemetry,
            lambda: self.stats,
            sessions=self._reported_sessions,
        )
        self._reports = SystemTopics(
            self.fanout, self.telemetry, lambda: self.stats, self._reported_sessions
        )
        self._sweeper = Sweeper(
            self.config.sweep_ms,
            self.fanout,
            self.access,
            self._reports,
            carriers=lambda: [*self.connections, *self._polls],
            end=self._end,
            flush_soon=self.flush_soon,
        )
        self._numbers = itertools.count(1)
        self._server: asyncio.Server | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        # Where several workers share a port: where publications go to, and who decides on them.
        self.replicate: Callable[[Publication], None] | None = None
        self.publish_elsewhere: Callable[[Session, frames.Publish], None] | None = None
        self.session_prefix = ""
        self.route_elsewhere: Callable[[Connection, HttpRequest], bool] | None = None
        self._totals = EdgeStats()

    async def start(
        self, host: str = "127.0.0.1", port: int = 0, *, share_port: bool = False
    ) -> int:
        """Listens, and answers the port it got. Several edges may share one."""
        demand_authentication(host, self.config.verifier)
        await self.attach_loop()
        context = None
        if self.config.tls is not None:
            context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            context.load_cert_chain(*self.config.tls)
        loop = asyncio.get_running_loop()
        try:
            self._server = await loop.create_server(
                lambda: Connection(self),
                host,
                port,
                backlog=1024,
                ssl=context,
                reuse_port=share_port,
            )
        except OSError as bad:
            raise SetupError(
                f"the edge cannot listen on {host}:{port}: {bad.strerror}; "
                "choose another port or stop the program that has it"
            ) from bad
        self._sweeper.start()
        return int(self._server.sockets[0].getsockname()[1])

    async def attach_loop(self) -> None:
        """From now on feeds may publish; `start` says it too."""
        self._loop = asyncio.get_running_loop()
        self.flushes.begin()
        self._busy_poll.begin()

    async def stop(self) -> None:
        self.flushes.stop()
        self._busy_poll.stop()
        self._sweeper.stop()
        if self._server is not None:
            self._server.close()
        for carrier in [*self.carriers.values()]:
            carrier.shut_down(ProtocolCode.SHUTDOWN)
        for connection in self.connections:
            connection.shut_down(ProtocolCode.SHUTDOWN)
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
            raise ProtocolError(
                ProtocolCode.BAD_VALUE, f"'{path}' cannot carry this: {error}"
            ) from error
        publication = Publication(path, value, offset, at_us, epoch, policy, key)
        topic = self.fanout.publish(publication, now_us())
        topic.shared = True
        if self.replicate is not None:
            self.replicate(structs.replace(publication, policy=topic.policy))
        self.flush_soon()

    def remove(self, path: str) -> bool:
        removed = self.fanout.remove(path)
        if self.replicate is not None:
            self.replicate(describe_removal(path))
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

    def deliver_threadsafe(self, request: PageRequest, page: HistoryPage | None) -> None:
        """From any thread: rows that a replay asked for; None when the log has lost them."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._deliver, request, page)

    def _deliver(self, request: PageRequest, page: HistoryPage | None) -> None:
        request.deliver(page)
        self.fanout.dirty[request.outbox] = None
        self.flush_soon()

    def value(self, path: str) -> Any:
        """The current value, None when there is no such topic."""
        topic = self.fanout.tree.get(path)
        return None if topic is None or topic.head is None else show_value(topic, topic.head)

    def serve(self, selector: str, handler: Handler) -> None:
        """Answer requests of clients for the selected paths."""
        self._calls.serve(selector, handler)

    def serve_all(self, answers: Iterable[RequestHandler]) -> None:
        for answer in answers:
            self._calls.serve(answer.selector, answer.handler)

    async def ask(self, session: str, path: str, body: Any = None) -> Any:
        """Ask the client of a session by name and wait for its answer."""
        carrier = self._by_name.get(session)
        if carrier is None or carrier.session is None:
            raise ProtocolError(ProtocolCode.NOT_FOUND, f"no session '{session}'")
        return await self._calls.ask(carrier.session, path, body)

    def register_merge(self, merge: Merge, samples: Iterable[Any] = ()) -> None:
        """A merge for `conflate='merge(name)'`; refused when its declared laws do not hold."""
        self.fanout.merges.register(merge, samples)

    @property
    def overloaded(self) -> bool:
        """Each session gets less, evenly, and that takes too long: more would make it worse."""
        return self.flushes.longer_than(self.config.overload_ms * 1000)

    @property
    def sessions(self) -> list[Session]:
        return [c.session for c in self.carriers.values() if c.session is not None]

    @property
    def stats(self) -> EdgeStats:
        """Of more sessions than one turn may count, bytes and pending are those of the last
        sweep.
        """
        groups, tally = self.fanout.tree.groups.values(), self._sweeper.totals
        if len(self.carriers) <= SWEEP_SLICE:
            tally = SessionTotals()
            for carrier in self.carriers.values():
                tally.add(carrier.session, carrier.bytes_sent)
        return replace(
            self._totals,
            connections=len(self.connections),
            sessions=len(self.carriers),
            topics=len(self.fanout.tree),
            published=self.fanout.published,
            conflated=sum(group.conflated for group in groups),
            updates_sent=sum(group.updates for group in groups),
            bytes_sent=self._totals.bytes_sent + tally.bytes_sent,
            pending=tally.pending,
        )

    def _publish_all(self, publications: tuple[Publication, ...], done: threading.Event) -> None:
        now = now_us()
        try:
            for publication in publications:
                try:
                    self.fanout.apply(publication, now)
                except ProtocolError as error:
                    # One row that has no topic must not hold up the others.
                    self._totals.unpublishable += 1
                    path, why = publication.path[:80], error.reason[:200]
                    _log.warning("'%s' was not published: %s", path, why)
        finally:
            done.set()
            self.flush_soon()

    def _reported_sessions(self) -> Iterator[ReportedSession]:
        """Not all of ten thousand."""
        for carrier in itertools.islice(self.carriers.values(), SESSIONS_REPORTED_MAX):
            if carrier.session is not None:
                yield carrier.session, carrier.unsent_bytes

    def record_age(self, session: Session, group: str, age_us: int) -> None:
        self.telemetry.record_age(session.number, group, age_us)

    def left(self, connection: Connection) -> None:
        self.connections.left(connection)
        self._end(connection)
        if isinstance(connection.awaited, PollConnection):
            connection.awaited.abandoned(connection)

    def open_session(self, carrier: Carrier) -> Session | None:
        if len(self.carriers) >= self.config.sessions_max or self.overloaded:
            self._totals.refused += 1
            return None
        name = self.session_prefix + secrets.token_urlsafe(16)
        session = Session(name, self, now_us())
        session.number = next(self._numbers)
        self.carriers[session.outbox] = carrier
        if isinstance(carrier, PollConnection):
            self._polls.add(carrier)
        self._by_name[session.name] = carrier
        return session

    def accept_publish(self, session: Session, frame: frames.Publish, now_us: int) -> bool:
        """A client publishes. False: the answer comes later, from the edge that decides."""
        if self.publish_elsewhere is not None:
            self.publish_elsewhere(session, frame)
            return False
        publish_frame(self.fanout, frame, now_us)
        if self.replicate is not None:
            self.replicate(describe_change(self.fanout, frame))
        return True

    def dispatch_request(self, session: Session, frame: frames.Request) -> None:
        self._calls.dispatch_request(session, frame)

    def upgrade_refused(self, headers: dict[str, str]) -> HttpResponse | None:
        reason = self.access.refuse_page(headers.get("origin", ""), headers.get("host", ""))
        return problem_response(HTTPStatus.FORBIDDEN, reason) if reason else None

    def request(self, connection: Connection, request: HttpRequest) -> None:
        """One HTTP request: an emulated transport, or a plain question."""
        if request.method != "POST" or request.path not in {"/sse", "/send", "/poll"}:
            connection.respond(self._routes.answer(request))
            return
        refused = self.upgrade_refused(request.headers)
        if refused is not None:
            connection.respond(refused)
        elif self._lives_elsewhere(connection, request):
            pass
        elif request.path == "/sse":
            connection.stream(request.body, self._routes.cross_origin_bytes(request))
        else:
            try:
                self._emulate(connection, request, unpack_frames(request.body))
            except ValueError as error:
                connection.respond(problem_response(HTTPStatus.BAD_REQUEST, str(error)))

    def _lives_elsewhere(self, connection: Connection, request: HttpRequest) -> bool:
        name = request.query.get("session", "")
        unknown = bool(name) and name not in self._by_name
        return (
            unknown
            and self.route_elsewhere is not None
            and self.route_elsewhere(connection, request)
        )

    def _emulate(self, connection: Connection, request: HttpRequest, parts: list[bytes]) -> None:
        name = request.query.get("session", "")
        carrier = self._by_name.get(name)
        if request.path == "/poll" and not name:
            carrier = PollConnection(self.config, now_us())
            carrier.session = self.open_session(carrier)
            if carrier.session is None:
                connection.respond(overloaded_response())
                return
        if request.path == "/poll" and isinstance(carrier, PollConnection):
            connection.awaited = carrier
            carrier.poll(connection, parts, now_us())
            if carrier.over:
                self._end(carrier)
        elif request.path == "/send" and isinstance(carrier, Connection):
            carrier.deliver(parts, now_us())
            connection.respond(HttpResponse(HTTPStatus.NO_CONTENT))
        else:
            connection.respond(unknown_session_response(request))
        self.flush_soon()

    def _end(self, carrier: Carrier) -> None:
        session = carrier.session
        if session is not None and self.carriers.pop(session.outbox, None) is not None:
            self._by_name.pop(session.name, None)
            if isinstance(carrier, PollConnection):
                self._polls.discard(carrier)
            self._calls.forget(session)
            self.telemetry.forget(session.number)
            session.forget()
            self._totals.bytes_sent += carrier.bytes_sent
