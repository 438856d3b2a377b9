"""Functions whose bodies the plan brings along: the namespaces, scripts, and the user's own.

Generated code calls them by a name made from theirs. A body is not asked about null unless it says
so, and a float result is rounded to 32 bits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from edgewise.engines.kernel import java
from edgewise.engines.kernel.writer import local
from edgewise.event.types import AttrType
from edgewise.plan.exprs import Call
from edgewise.plan.nodes import App
from edgewise.plan.rules.rewriting import calls_of


def call_text(call: Call, args: list[str]) -> str:
    given = ["rt.now", *args] if call.clocked else args
    return f"{_name(call)}({', '.join(given)})"


def bodies(app: App) -> dict[str, Callable[..., Any]]:
    """What the generated code of this app may call, by name."""
    return {_name(c): _guarded(c, c.body) for c in calls_of(app) if c.body is not None}


def _name(call: Call) -> str:
    return f"body_{local(call.name)}"


def _guarded(call: Call, body: Callable[..., Any]) -> Callable[..., Any]:
    single = call.type is AttrType.FLOAT
    if call.takes_null and not single:
        return body

    def guarded(*args: Any) -> Any:
        if not call.takes_null and None in args:
            return None
        value = body(*args)
        return java.f32(value) if single and value is not None else value

    return guarded
