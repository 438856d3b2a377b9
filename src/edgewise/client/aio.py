"""Connect to an edge with asyncio: subscribe, publish, request.

    async with connect("ws://127.0.0.1:8008/ws") as edge:
        async for update in edge.subscribe("alerts/#"):
            print(update.path, update.value)

It reconnects by itself. A subscription that is not read stops reading from the socket when its
mailbox is full, and the server conflates: a slow consumer gets fewer, newer values. The sync
client runs it on a thread.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from edgewise.client.conversation import (
    CallResult,
    Conversation,
    Delivery,
    Ended,
    IncomingRequest,
    Outcome,
    backoff_s,
)
from edgewise.client.transports import TRANSPORTS, Transport, TransportLost, open_transport
from edgewise.errors import ProtocolError
from edgewise.wire.codes import ProtocolCode
from edgewise.wire.frames import HelloOptions
from edgewise.wire.view import Event

MAILBOX_MAX = 1024
WELCOME_S = 10.0
ACK_S = 1.0
# A process that is stopped keeps its connections, and its kernel accepts new ones: only silence
# tells. With another address to go to it is worth asking often.
SILENCE_S, SILENCE_ALONE_S = 2.0, 15.0
OPEN_S = 3.0  # with another address to go to

OnRequest = Callable[[Any], Awaitable[Any]]
Token = str | Callable[[], str | Awaitable[str]]


class Subscription:
    """Events of one selector, in order; ends with the client."""

    def __init__(self, client: Client, id_: int, selector: str) -> None:
        self.id = id_
        self.selector = selector
        self._client = client
        self.mailbox: asyncio.Queue[Event | None] = asyncio.Queue(MAILBOX_MAX)

    def __aiter__(self) -> AsyncIterator[Event]:
        return self

    async def __anext__(self) -> Event:
        event = await self.mailbox.get()
        if event is None:
            error = self._client.error
            if error is not None:
                raise error
            raise StopAsyncIteration
        return event

    async def close(self) -> None:
        await self._client.unsubscribe(self)


class Client:
    """Use `connect`. `state` is 'connecting', 'open', 'waiting' or 'closed'."""

    def __init__(
        self,
        urls: tuple[str, ...],
        hello: HelloOptions,
        kinds: tuple[str, ...] = TRANSPORTS,
        *,
        token: Token = "",
        trust: ssl.SSLContext | None = None,
        silence_s: float | None = None,
    ) -> None:
        self.urls = urls
        alone = len(urls) == 1
        self._silence_s = silence_s or (SILENCE_ALONE_S if alone else SILENCE_S)
        self._open_s = None if alone else OPEN_S
        self._token = token
        self._trust = trust
        self.transport = kinds[0]
        self._kinds = kinds
        self.state = "connecting"
        self.error: ProtocolError | None = None
        self.opened = asyncio.Event()
        self._conversation = Conversation(hello)
        self._subscriptions: dict[int, Subscription] = {}
        self._calls: dict[int, asyncio.Future[Any]] = {}
        self._handlers: dict[str, OnRequest] = {}
        self._lane: Transport | None = None
        self._task: asyncio.Task[None] | None = None
        self._serving: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._run())
        return self

    async def __aexit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        await self.close()

    def subscribe(self, selector: str, **options: Any) -> Subscription:
        """`rate`, `weight`, `window`, `last` as in SUBSCRIBE."""
        id_ = self._conversation.subscribe(selector, **options)
        subscription = self._subscriptions[id_] = Subscription(self, id_, selector)
        self._send_soon()
        return subscription

    async def unsubscribe(self, subscription: Subscription) -> None:
        self._conversation.unsubscribe(subscription.id)
        self._subscriptions.pop(subscription.id, None)
        await self._send()

    async def publish(self, path: str, value: Any, **options: Any) -> None:
        """Returns when the server took it."""
        await self._answer(self._conversation.publish(path, value, **options))

    async def request(self, path: str, body: Any = None) -> Any:
        return await self._answer(self._conversation.request(path, body))

    async def set_budget(self, *, bytes_per_s: int = 0, updates_per_s: int = 0) -> None:
        """Another budget from now on; 0 is none."""
        self._conversation.set_budget(bytes_per_s, updates_per_s)
        await self._send()

    def on_request(self, path: str, handler: OnRequest) -> None:
        self._handlers[path] = handler

    def value(self, path: str) -> Any:
        return self._conversation.view.value(path)

    async def settled(self) -> None:
        """Until it is open, or refused for good: then `error` says why."""
        assert self._task is not None, "use `async with connect(...)`"
        opened = asyncio.ensure_future(self.opened.wait())
        try:
            await asyncio.wait({opened, self._task}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            opened.cancel()

    async def close(self) -> None:
        self._conversation.end()
        with contextlib.suppress(TransportLost):
            await self._send()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None
        self._finish(None)

    async def _run(self) -> None:
        attempt = 0
        ways = [(url, kind) for url in self.urls for kind in self._kinds]
        at = 0
        while True:
            self.state = "connecting"
            url, self.transport = ways[at]
            ended = await self._session(url, self.transport)
            welcomed = self.opened.is_set()
            self.opened.clear()
            self._conversation.lost()
            self._fail_calls(ProtocolError(ended.code, ended.reason))
            if not ended.may_retry:
                self._finish(ProtocolError(ended.code, ended.reason))
                return
            self.state = "waiting"
            if welcomed:
                # What worked will work again; another edge may be quicker to come back than this.
                attempt, at = 0, (at + len(self._kinds)) % len(ways)
            else:
                at = (at + 1) % len(ways)
                if at:
                    continue
            await asyncio.sleep(backoff_s(attempt, random.random()))  # noqa: S311 - spreads a herd
            attempt += 1

    async def _session(self, url: str, kind: str) -> Ended:
        """One connection from handshake to its end."""
        lane: Transport | None = None
        try:
            token = await _said(self._token)
            async with asyncio.timeout(self._open_s):
                lane = self._lane = await open_transport(kind, url, self._trust)
                self._conversation.begin(token)
                await self._send()
            return await self._receive(lane)
        except TimeoutError:
            return Ended(ProtocolCode.LOST, "no connection in time")
        except TransportLost as error:
            return Ended(ProtocolCode.LOST, str(error))
        except ProtocolError as error:
            return Ended(ProtocolCode.LOST, str(error))
        finally:
            self._lane = None
            if lane is not None:
                await lane.close()

    async def _receive(self, lane: Transport) -> Ended:
        acked_s = time.monotonic()
        while True:
            frames = await self._next_frames(lane)
            if isinstance(frames, Ended):
                return frames
            for data in frames:
                for outcome in self._conversation.receive(data, time.time_ns() // 1000):
                    if isinstance(outcome, Ended):
                        return outcome
                    await self._take(outcome)
            if self._conversation.open and not self.opened.is_set():
                lane.set_session(self._conversation.session_name)
                self.state = "open"
                self.opened.set()
            if time.monotonic() - acked_s > ACK_S:
                acked_s = time.monotonic()
                self._conversation.ack()
            await self._send()

    async def _next_frames(self, lane: Transport) -> list[bytes] | Ended:
        """What comes next; an edge that is silent is asked once for a sign of life."""
        is_open = self.opened.is_set()
        patience_s = self._silence_s if is_open else self._open_s or WELCOME_S
        for last in (not is_open, True):
            try:
                async with asyncio.timeout(patience_s):
                    frames = await lane.receive()
                return (
                    Ended(ProtocolCode.LOST, "the connection ended") if frames is None else frames
                )
            except TimeoutError:
                if last or not await self._ask_for_life(patience_s):
                    break
        return Ended(ProtocolCode.LOST, "no sign of life" if is_open else "no welcome in time")

    async def _ask_for_life(self, patience_s: float) -> bool:
        """Whether the question was sent; over HTTP that takes an answer."""
        self._conversation.ping(time.time_ns() // 1000)
        try:
            async with asyncio.timeout(patience_s):
                await self._send()
        except TimeoutError:
            return False
        return True

    async def _take(self, outcome: Outcome) -> None:
        if isinstance(outcome, Delivery):
            for id_ in outcome.ids:
                subscription = self._subscriptions.get(id_)
                if subscription is not None:
                    await subscription.mailbox.put(outcome.event)
        elif isinstance(outcome, CallResult):
            self._settle(outcome)
        elif isinstance(outcome, IncomingRequest):
            task = asyncio.create_task(self._serve(outcome))
            self._serving.add(task)
            task.add_done_callback(self._serving.discard)

    def _settle(self, answer: CallResult) -> None:
        call = self._calls.pop(answer.id, None)
        if call is not None and not call.done():
            if answer.error is None:
                call.set_result(answer.body)
            else:
                call.set_exception(answer.error)
        elif answer.id in self._subscriptions and answer.error is not None:
            self.error = answer.error
            subscription = self._subscriptions.pop(answer.id)
            self._conversation.unsubscribe(answer.id)
            _end_mailbox(subscription.mailbox)

    async def _serve(self, asked: IncomingRequest) -> None:
        handler = self._handlers.get(asked.path)
        if handler is None:
            self._conversation.refuse(
                asked.id, ProtocolCode.NOT_FOUND, f"nothing serves '{asked.path}'"
            )
        else:
            try:
                self._conversation.reply(asked.id, await handler(asked.body))
            except ValueError as error:
                self._conversation.refuse(asked.id, ProtocolCode.BAD_VALUE, str(error))
        await self._send_quietly()

    async def _answer(self, id_: int) -> Any:
        call = self._calls[id_] = asyncio.get_running_loop().create_future()
        await self._send()
        return await call

    async def _send(self) -> None:
        if self._lane is not None:
            frames = self._conversation.data_to_send()
            if frames:
                await self._lane.send(frames)

    def _send_soon(self) -> None:
        if self._conversation.open:
            task = asyncio.create_task(self._send_quietly())
            self._serving.add(task)
            task.add_done_callback(self._serving.discard)

    async def _send_quietly(self) -> None:
        # A lane that breaks here is noticed by the receiving side, which starts over.
        with contextlib.suppress(TransportLost):
            await self._send()

    def _fail_calls(self, error: ProtocolError) -> None:
        calls, self._calls = self._calls, {}
        for call in calls.values():
            if not call.done():
                call.set_exception(error)

    def _finish(self, error: ProtocolError | None) -> None:
        self.state = "closed"
        self.error = self.error or error
        self._fail_calls(error or ProtocolError(ProtocolCode.DONE, "closed"))
        for subscription in self._subscriptions.values():
            _end_mailbox(subscription.mailbox)


async def _said(token: Token) -> str:
    if isinstance(token, str):
        return token
    given = token()
    return given if isinstance(given, str) else await given


def _end_mailbox(mailbox: asyncio.Queue[Event | None]) -> None:
    if mailbox.full():
        mailbox.get_nowait()
    mailbox.put_nowait(None)


def connect(
    url: str | tuple[str, ...],
    *,
    token: Token = "",
    client: str = "python",
    bytes_per_s: int = 0,
    updates_per_s: int = 0,
    transports: tuple[str, ...] = TRANSPORTS,
    ca: str | Path | None = None,
    silence_s: float | None = None,
) -> Client:
    """`url` is the edge's WebSocket address, such as ws://127.0.0.1:8008/ws.

    Several addresses are edges on one log: when one goes, the next is tried. Transports are tried
    in order when one does not get through. `token` may be a function that answers one, also an
    async one: it is asked on every connect. `ca` is a file with certificates to trust. An edge
    that sends nothing for `silence_s` is asked for a sign of life, and left after as long again;
    2 s where there are several addresses, else 15 s.
    """
    urls = (url,) if isinstance(url, str) else tuple(url)
    hello = HelloOptions("", client, bytes_per_s, updates_per_s)
    trust = ssl.create_default_context(cafile=ca) if ca else None
    return Client(urls, hello, tuple(transports), token=token, trust=trust, silence_s=silence_s)
