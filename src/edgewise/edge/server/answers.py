"""Declare handlers of one's own for requests of clients.

A handler is `async (caller, path, body) -> body`; it may ask the caller back over the same
session. In a file for `--functions`:

    @answers("orders/+/cancel")
    async def cancel(caller, path, body):
        if not await caller.ask("confirm", {"cancel": path}):
            raise ValueError("not confirmed")
        return {"by": caller.principal.name}
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from edgewise.wire.paths import parse_selector

if TYPE_CHECKING:
    from edgewise.edge.access.auth import Principal  # checking an app needs no cryptography


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks."""

    principal: Principal
    client: str
    ask: Callable[..., Awaitable[Any]]  # (path, body=None) -> the client's answer


Handler = Callable[[Caller, str, Any], Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class RequestHandler:
    """A handler and the paths it answers; made by `answers`."""

    selector: str
    handler: Handler

    def __post_init__(self) -> None:
        parse_selector(self.selector)


def answers(selector: str) -> Callable[[Handler], RequestHandler]:
    """A decorator: the function answers requests of clients to these paths."""
    return lambda handler: RequestHandler(selector, handler)
