"""What the sender of a request or message that was not taken is told. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from edgewise.gateway.examine import Fault


@dataclass(frozen=True, slots=True)
class Refused:
    """`status` is the HTTP status; `code` the one word that metrics count by."""

    status: int
    code: str
    message: str
    problems: tuple[Fault, ...] = ()
    retry_after_s: int = 0
    headers: tuple[tuple[bytes, bytes], ...] = field(default=())

    def answer(self) -> dict[str, Any]:
        """What the sender is told."""
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


def refused_body(status: int, code: str, reason: str, *, at: str = "body") -> Refused:
    """A refusal of the request as a whole: no single event is at fault."""
    return Refused(status, code, f"{at}: {reason}", (Fault(-1, at, reason),))
