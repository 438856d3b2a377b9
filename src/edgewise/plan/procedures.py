"""The procedural door: a class that sees one event after the other, with state it declares.

    class Rising(Procedure):
        name = "my:rising"
        appends = {"steps": "int"}
        state = {"last": None, "steps": 0}

        def process(self, event, state):
            state["steps"] = state["steps"] + 1 if event["v"] > (state["last"] or 0) else 0
            state["last"] = event["v"]
            return {"steps": state["steps"]}

In an app it is a stream function: `from S#my:rising()[steps > 3] select ...`. State is one
dictionary per key, holds only what can be written as JSON, and is saved and restored with the rest
of the kernel. A procedure reads no clock and throws no dice: a replay must give the same rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from edgewise.event.schema import Attribute
from edgewise.event.types import AttrType

Row = Mapping[str, Any]


class Procedure:
    """`appends` are the attributes it adds to each event, `state` what a new key starts with."""

    name: ClassVar[str] = ""
    appends: ClassVar[Mapping[str, str]] = {}
    state: ClassVar[Mapping[str, Any]] = {}
    deterministic: ClassVar[bool] = False  # equal events and state always give equal values

    def process(self, event: Row, state: dict[str, Any]) -> Row | None:
        """The values of `appends` for this event; None drops it."""
        raise NotImplementedError

    @classmethod
    def adds(cls) -> tuple[Attribute, ...]:
        return tuple(Attribute(name, AttrType(kind)) for name, kind in cls.appends.items())
