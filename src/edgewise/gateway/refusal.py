"""Describe why a request or message was refused. Pure.

Used wherever events are read: `admit`, `mappers`, `request_body`, `http`, `websocket`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from edgewise.gateway.json_body import Fault


@dataclass(frozen=True, slots=True)
class Refusal:
    """`status` is the HTTP status; `code` is the word that metrics count by."""

    status: int
    code: str
    message: str
    problems: tuple[Fault, ...] = ()
    retry_after_s: int = 0
    headers: tuple[tuple[bytes, bytes], ...] = field(default=())

    def to_json(self) -> dict[str, Any]:
        """The JSON object for the sender."""
        listed = [
            {"field": p.field, "reason": p.reason}
            if p.index < 0
            else {"event": p.index, "field": p.field, "reason": p.reason}
            for p in self.problems
        ]
        return {
            "error": self.code,
            "message": self.message,
            "accepted": 0,
            "problems": listed,
        }


def refuse_request(status: int, code: str, reason: str, *, at: str = "body") -> Refusal:
    """Refuse the request as a whole; `at` is the part at fault, no single event."""
    return Refusal(status, code, f"{at}: {reason}", (Fault(-1, at, reason),))
