"""Run requests over sessions, in both directions, with limits on how many wait and for how long.

Handlers are those of `answers.py`. A ValueError of a handler is the client's fault, and the client
gets its text; any other error is ours, and the client hears only that the request failed. The
server dispatches to it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from edgewise.edge.server.answers import Caller, Handler
from edgewise.edge.sessions.session import Session
from edgewise.edge.topics.selectors import SelectorIndex
from edgewise.errors import ProtocolError
from edgewise.wire import codec, frames
from edgewise.wire.codes import ProtocolCode
from edgewise.wire.paths import parse_path, parse_selector

CALLS_MAX = 32  # waiting requests per session
ANSWER_S = 30.0

_log = logging.getLogger("edgewise.edge")


class RequestDispatcher:
    def __init__(self, flush_soon: Callable[[], None]) -> None:
        self._flush_soon = flush_soon
        self._index: SelectorIndex[Handler] = SelectorIndex()
        self._running: dict[Session, set[asyncio.Task[None]]] = {}

    def serve(self, selector: str, handler: Handler) -> None:
        self._index.add(parse_selector(selector), handler)

    def dispatch_request(self, session: Session, frame: frames.Request) -> None:
        """A client asks; the answer goes out when the handler is done."""
        running = self._running.setdefault(session, set())
        handler = next(self._index.match(parse_path(frame.path)), None)
        if handler is None:
            session.refuse(frame.id, ProtocolCode.NOT_FOUND, f"nothing serves '{frame.path}'")
        elif len(running) >= CALLS_MAX:
            session.refuse(frame.id, ProtocolCode.BUSY, f"{CALLS_MAX} requests wait already")
        else:
            task = asyncio.get_running_loop().create_task(self._run(session, handler, frame))
            running.add(task)
            task.add_done_callback(running.discard)

    def forget(self, session: Session) -> None:
        for task in self._running.pop(session, ()):
            task.cancel()

    async def ask(self, session: Session, path: str, body: Any) -> Any:
        """Ask a client and wait for its answer."""
        answered: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

        def done(value: Any, error: ProtocolError | None) -> None:
            if not answered.done():
                if error is None:
                    answered.set_result(value)
                else:
                    answered.set_exception(error)

        number = session.ask(path, body, done)
        self._flush_soon()
        try:
            return await asyncio.wait_for(answered, ANSWER_S)
        except TimeoutError:
            raise ProtocolError(
                ProtocolCode.NO_ANSWER, f"'{path}': no answer in {ANSWER_S:g} s"
            ) from None
        finally:
            session.forget_request(number)

    def _caller(self, session: Session) -> Caller:
        async def ask(path: str, body: Any = None) -> Any:
            return await self.ask(session, path, body)

        return Caller(session.principal, session.client, ask)

    async def _run(self, session: Session, handler: Handler, frame: frames.Request) -> None:
        try:
            async with asyncio.timeout(ANSWER_S):
                body = await handler(self._caller(session), frame.path, frame.body)
            codec.encode(body)
        except TimeoutError:
            session.refuse(frame.id, ProtocolCode.NO_ANSWER, f"'{frame.path}' took too long")
        except ProtocolError as error:
            session.refuse(frame.id, error.code, error.reason)
        except (ValueError, TypeError, OverflowError) as error:
            session.refuse(frame.id, ProtocolCode.BAD_VALUE, str(error))
        except Exception:  # noqa: BLE001 - foreign code: its fault must not end the session
            _log.exception("the handler of '%s' failed", frame.path)
            session.refuse(frame.id, ProtocolCode.BUSY, f"'{frame.path}' failed")
        else:
            session.reply(frame.id, body)
        self._flush_soon()
