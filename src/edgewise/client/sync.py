"""Connect to an edge from threads: the async client on a thread of its own.

with connect("ws://127.0.0.1:8008/ws") as edge:
    for update in edge.subscribe("alerts/#"):
        print(update.path, update.value)
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator
from types import TracebackType
from typing import Any, Self

from edgewise.client import aio
from edgewise.errors import ProtocolError
from edgewise.wire.codes import ProtocolCode
from edgewise.wire.frames import RemoveReason
from edgewise.wire.view import Event, Removed

OPEN_S = 10.0
CALL_S = 30.0
_END = Removed("", RemoveReason.UNSUBSCRIBED)  # stands for the end between the threads


class SyncSubscription:
    """Iterate for events; `next(timeout_s)` answers None when nothing came in time."""

    def __init__(self, client: SyncClient, inner: aio.Subscription) -> None:
        self._client = client
        self._inner = inner

    def __iter__(self) -> Iterator[Event]:
        while True:
            try:
                event = self.next(None)
            except StopIteration:
                return
            assert event is not None
            yield event

    def next(self, timeout_s: float | None) -> Event | None:
        """The next event; raises StopIteration at the end."""

        async def one() -> Event | None:
            try:
                return await asyncio.wait_for(self._inner.__anext__(), timeout_s)
            except TimeoutError:
                return None
            except StopAsyncIteration:
                return _END

        event: Event | None = self._client.run(one(), None)
        if event is _END:
            raise StopIteration
        return event

    def close(self) -> None:
        self._client.run(self._inner.close())


class SyncClient:
    def __init__(self, url: str | tuple[str, ...], **options: Any) -> None:
        self._url = url
        self._options = options
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._inner: aio.Client | None = None

    def __enter__(self) -> Self:
        self._thread.start()
        try:
            self.run(self._enter())
        except TimeoutError:
            self._shut()
            raise ProtocolError(ProtocolCode.LOST, f"no edge answers at {self._url}") from None
        if self._edge.error is not None:
            self._shut()
            raise self._edge.error
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self._shut()

    def subscribe(self, selector: str, **options: Any) -> SyncSubscription:
        async def start() -> aio.Subscription:
            return self._edge.subscribe(selector, **options)

        return SyncSubscription(self, self.run(start()))

    def publish(self, path: str, value: Any, **options: Any) -> None:
        self.run(self._edge.publish(path, value, **options))

    def request(self, path: str, body: Any = None) -> Any:
        return self.run(self._edge.request(path, body))

    def on_request(self, path: str, handler: Callable[[Any], Any]) -> None:
        """Answer what the server asks; the handler runs in a thread of its own."""

        async def answer(body: Any) -> Any:
            return await asyncio.to_thread(handler, body)

        self._edge.on_request(path, answer)

    def set_budget(self, *, bytes_per_s: int = 0, updates_per_s: int = 0) -> None:
        self.run(self._edge.set_budget(bytes_per_s=bytes_per_s, updates_per_s=updates_per_s))

    def value(self, path: str) -> Any:
        return self._edge.value(path)

    def run(self, work: Coroutine[Any, Any, Any], timeout_s: float | None = CALL_S) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(timeout_s)

    @property
    def _edge(self) -> aio.Client:
        assert self._inner is not None, "use `with connect(...) as edge`"
        return self._inner

    async def _enter(self) -> None:
        self._inner = aio.connect(self._url, **self._options)
        await self._inner.__aenter__()
        await asyncio.wait_for(self._inner.settled(), OPEN_S)

    def _shut(self) -> None:
        if self._inner is not None:
            self.run(self._inner.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


def connect(url: str | tuple[str, ...], **options: Any) -> SyncClient:
    """A client that blocks, for `with`; options as for `edgewise.aio.connect`.

        with edgewise.connect("ws://127.0.0.1:8008/ws") as edge:
            edge.publish("rooms/hall", {"celsius": 21.5})
            for update in edge.subscribe("alerts/#"):
                print(update.path, update.value)

    It reconnects by itself.
    """
    return SyncClient(url, **options)
