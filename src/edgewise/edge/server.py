"""The edge as a server: one port for HTTP and WebSocket, and the doors for the node.

A flush happens when a socket can take bytes and its tick is due. `TCP_NOTSENT_LOWAT` and a
high-water mark of zero make the kernel's buffers part of the queue: a client that does not read
has at most one pending value per topic here and a few kilobytes below.
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
from http import HTTPStatus
from typing import Any

from edgewise.edge.answers import Answer, Handler
from edgewise.edge.arrivals import Arrivals, Doorstep
from edgewise.edge.awake import Awake
from edgewise.edge.calls import Calls
from edgewise.edge.config import EdgeConfig
from edgewise.edge.conflate import Outbox
from edgewise.edge.encode import shown
from edgewise.edge.fanout import Fanout
from edgewise.edge.gate import Gate, demand_authentication
from edgewise.edge.merge import Merge
from edgewise.edge.puts import Publication, Told, bring, gone, put, told
from edgewise.edge.reports import Reports
from edgewise.edge.rounds import Rounds, now_us
from edgewise.edge.routes import Routes, Stats, Tally
from edgewise.edge.session import Session
from edgewise.edge.telemetry import Telemetry, Watched
from edgewise.edge.topics import Policy, TopicTree
from edgewise.edge.transports.connection import Connection
from edgewise.edge.transports.emulated import PollCarrier, no_room, no_session, unpack
from edgewise.edge.transports.http import Request, Response, problem
from edgewise.edge.transports.websocket import Packer
from edgewise.errors import ProtocolError, SetupError
from edgewise.wire import codec, frames
from edgewise.wire.codes import Code

_log = logging.getLogger("edgewise.edge")

Carrier = Connection | PollCarrier
SESSIONS_TOLD_MAX = 200
SWEEP_SLICE = 128  # connections looked at in one turn of the loop


class Edge:
    """Topics in, sessions out. All methods but the `_threadsafe` ones belong to the loop."""

    def __init__(self, config: EdgeConfig | None = None) -> None:
        self.config = config or EdgeConfig()
        self.config.validate()
        self.fanout = Fanout(TopicTree(self.config.topics_max))
        self.gate = Gate(
            self.config.verifier,
            self.config.origins,
            self.config.principal_sessions_max,
            revoked=self.config.revoked,
        )
        self.telemetry = Telemetry()
        self.now_us = now_us
        self.pack = Packer()
        self.carriers: dict[Outbox, Carrier] = {}
        self.rounds = Rounds(self.fanout, self.carriers, self.config.tick_ms * 1000)
        self.flush_due, self.flush_soon = self.rounds.due, self.rounds.soon
        self.flush_again = self.rounds.again
        self._awake = Awake()
        self.spoke = self._awake.spoke
        self._by_name: dict[str, Carrier] = {}
        self.arrivals = Arrivals(self.config)
        self.joined, self.asks = self.arrivals.joined, self.arrivals.asks
        self.came = Doorstep().came
        self._polls: set[PollCarrier] = set()
        self._calls = Calls(self.flush_soon)
        self._routes = Routes(
            self.config,
            self.fanout.tree,
            self.gate,
            self.telemetry,
            lambda: self.stats,
            sessions=self._told_sessions,
        )
        self._reports = Reports(
            self.fanout, self.telemetry, lambda: self.stats, self._told_sessions
        )
        self._numbers = itertools.count(1)
        self._server: asyncio.Server | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._sweep_handle: asyncio.Handle | None = None
        # Where several edges share a port (`siblings`): who hears of changes, who decides.
        self.tell: Callable[[Told], None] | None = None
        self.decides_elsewhere: Callable[[Session, frames.Publish], None] | None = None
        self.session_prefix = ""
        self.pass_on: Callable[[Connection, Request], bool] | None = None
        self._totals = Stats()
        self._tally = Tally()

    async def start(
        self, host: str = "127.0.0.1", port: int = 0, *, share_port: bool = False
    ) -> int:
        """Listens, and answers the port it got. Several edges may share one."""
        demand_authentication(host, self.config.verifier)
        await self.take_in()
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
        self._sweep_later()
        return int(self._server.sockets[0].getsockname()[1])

    async def take_in(self) -> None:
        """From now on feeds may publish; `start` says it too."""
        self._loop = asyncio.get_running_loop()
        self.rounds.begin()
        self._awake.begin()

    async def stop(self) -> None:
        self.rounds.stop()
        self._awake.stop()
        if self._sweep_handle is not None:
            self._sweep_handle.cancel()
            self._sweep_handle = None
        if self._server is not None:
            self._server.close()
        for carrier in [*self.carriers.values()]:
            carrier.goodbye(Code.SHUTDOWN)
        for connection in self.arrivals:
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
        topic = self.fanout.publish(
            path,
            value,
            now_us=now_us(),
            offset=offset,
            at_us=at_us,
            epoch=epoch,
            policy=policy,
            key=key,
        )
        topic.shared = True
        if self.tell is not None:
            self.tell(Told(path, value, key, False, topic.policy, epoch, offset + 1, at_us))
        self.flush_soon()

    def remove(self, path: str) -> bool:
        removed = self.fanout.remove(path)
        if self.tell is not None:
            self.tell(gone(path))
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
        return None if topic is None or topic.head is None else shown(topic, topic.head)

    def serve(self, selector: str, handler: Handler) -> None:
        """Answer requests of clients for the selected paths."""
        self._calls.serve(selector, handler)

    def serve_all(self, answers: Iterable[Answer]) -> None:
        for answer in answers:
            self._calls.serve(answer.selector, answer.handler)

    async def ask(self, session: str, path: str, body: Any = None) -> Any:
        """Ask the client of a session by name and wait for its answer."""
        carrier = self._by_name.get(session)
        if carrier is None or carrier.session is None:
            raise ProtocolError(Code.NOT_FOUND, f"no session '{session}'")
        return await self._calls.ask(carrier.session, path, body)

    def register_merge(self, merge: Merge, samples: Iterable[Any] = ()) -> None:
        """A merge for `conflate='merge(name)'`; refused when its declared laws do not hold."""
        self.fanout.merges.register(merge, samples)

    @property
    def overloaded(self) -> bool:
        """Everybody gets less, evenly, and that takes too long: newcomers would make it worse."""
        return self.rounds.longer_than(self.config.overload_ms * 1000)

    @property
    def sessions(self) -> list[Session]:
        return [c.session for c in self.carriers.values() if c.session is not None]

    @property
    def stats(self) -> Stats:
        """Of more sessions than one turn may look at, bytes and pending are those of the last
        sweep.
        """
        groups, tally = self.fanout.tree.groups.values(), self._tally
        if len(self.carriers) <= SWEEP_SLICE:
            tally = Tally()
            for carrier in self.carriers.values():
                tally.add(carrier.session, carrier.bytes_sent)
        return replace(
            self._totals,
            connections=len(self.arrivals),
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
                    bring(self.fanout, publication, now)
                except ProtocolError as error:
                    # One row that has no topic must not hold up the others.
                    self._totals.unpublishable += 1
                    path, why = publication.path[:80], error.reason[:200]
                    _log.warning("'%s' was not published: %s", path, why)
        finally:
            done.set()
            self.flush_soon()

    def _sweep_later(self) -> None:
        if self._loop is not None:
            self._sweep_handle = self._loop.call_later(self.config.sweep_ms / 1000, self._sweep)

    def _sweep(self) -> None:
        now = now_us()
        if self.fanout.sweep(now) and self._loop is not None:
            self.flush_soon()
            self._sweep_handle = self._loop.call_soon(self._sweep)
            return
        self.gate.look()
        tally = Tally() if self._reports.due(now) else None
        self._sweep_on(iter([*self.arrivals, *self._polls]), tally)

    def _sweep_on(self, carriers: Iterator[Carrier], tally: Tally | None) -> None:
        """In slices: nobody waits for a look at ten thousand others."""
        now, seen = now_us(), 0
        for carrier in itertools.islice(carriers, SWEEP_SLICE):
            seen += 1
            carrier.tick(now)
            if tally is not None:
                tally.add(carrier.session, carrier.bytes_sent)
            if isinstance(carrier, PollCarrier) and carrier.over:
                self._end(carrier)
        over = seen < SWEEP_SLICE
        if over and tally is not None:
            self._tally = tally
            self._reports.tell(now)
        self.flush_soon()
        if over:
            self._sweep_later()
        elif self._loop is not None:
            self._sweep_handle = self._loop.call_soon(self._sweep_on, carriers, tally)

    def _told_sessions(self) -> Iterator[Watched]:
        """Not all of ten thousand."""
        for carrier in itertools.islice(self.carriers.values(), SESSIONS_TOLD_MAX):
            if carrier.session is not None:
                yield carrier.session, carrier.unsent_bytes

    def aged(self, group: str, age_us: int) -> None:
        self.telemetry.age(group, age_us)

    def left(self, connection: Connection) -> None:
        self.arrivals.left(connection)
        self._end(connection)
        if isinstance(connection.waits_for, PollCarrier):
            connection.waits_for.abandoned(connection)

    def open_session(self, carrier: Carrier) -> Session | None:
        if len(self.carriers) >= self.config.sessions_max or self.overloaded:
            self._totals.refused += 1
            return None
        name = self.session_prefix + secrets.token_urlsafe(16)
        session = Session(name, self, now_us())
        session.number = next(self._numbers)
        self.carriers[session.outbox] = carrier
        if isinstance(carrier, PollCarrier):
            self._polls.add(carrier)
        self._by_name[session.name] = carrier
        return session

    def put(self, session: Session, frame: frames.Publish, now_us: int) -> bool:
        """A client publishes. False: the answer comes later, from the edge that decides."""
        if self.decides_elsewhere is not None:
            self.decides_elsewhere(session, frame)
            return False
        put(self.fanout, frame, now_us)
        if self.tell is not None:
            self.tell(told(self.fanout, frame))
        return True

    def asked(self, session: Session, frame: frames.Request) -> None:
        self._calls.asked(session, frame)

    def upgrade_refused(self, headers: dict[str, str]) -> Response | None:
        if self.gate.admits_origin(headers.get("origin", ""), headers.get("host", "")):
            return None
        return problem(HTTPStatus.FORBIDDEN, "pages of this origin may not connect")

    def request(self, connection: Connection, request: Request) -> None:
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
                self._emulate(connection, request, unpack(request.body))
            except ValueError as error:
                connection.respond(problem(HTTPStatus.BAD_REQUEST, str(error)))

    def _lives_elsewhere(self, connection: Connection, request: Request) -> bool:
        name = request.query.get("session", "")
        unknown = bool(name) and name not in self._by_name
        return unknown and self.pass_on is not None and self.pass_on(connection, request)

    def _emulate(self, connection: Connection, request: Request, parts: list[bytes]) -> None:
        name = request.query.get("session", "")
        carrier = self._by_name.get(name)
        if request.path == "/poll" and not name:
            carrier = PollCarrier(self.config, now_us())
            carrier.session = self.open_session(carrier)
            if carrier.session is None:
                connection.respond(no_room())
                return
        if request.path == "/poll" and isinstance(carrier, PollCarrier):
            connection.waits_for = carrier
            carrier.poll(connection, parts, now_us())
            if carrier.over:
                self._end(carrier)
        elif request.path == "/send" and isinstance(carrier, Connection):
            carrier.deliver(parts, now_us())
            connection.respond(Response(HTTPStatus.NO_CONTENT))
        else:
            connection.respond(no_session(request))
        self.flush_soon()

    def _end(self, carrier: Carrier) -> None:
        session = carrier.session
        if session is not None and self.carriers.pop(session.outbox, None) is not None:
            self._by_name.pop(session.name, None)
            if isinstance(carrier, PollCarrier):
                self._polls.discard(carrier)
            self._calls.forget(session)
            self.telemetry.forget(session.number)
            session.forget()
            self._totals.bytes_sent += carrier.bytes_sent
