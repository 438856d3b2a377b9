"""Functions and procedures whose bodies the plan brings along: namespaces, scripts, users' own.

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
from edgewise.plan.nodes import App, StreamCall, handlers_of
from edgewise.plan.procedures import Procedure
from edgewise.plan.rules.rewriting import calls_of


def call_text(call: Call, args: list[str]) -> str:
    given = ["rt.now", *args] if call.clocked else args
    return f"{_name(call)}({', '.join(given)})"


def bodies(app: App) -> dict[str, Callable[..., Any]]:
    """What the generated code of this app may call, by name."""
    found = {_name(c): _guarded(c, c.body) for c in calls_of(app) if c.body is not None}
    for query in app.queries:
        for handler in handlers_of(query.input):
            if isinstance(handler, StreamCall) and handler.procedure is not None:
                found[procedure_name(handler)] = _stepped(handler.procedure)
    return found


def procedure_name(call: StreamCall) -> str:
    return f"procedure_{local(call.name)}"


def _stepped(procedure: Procedure) -> Callable[..., Any]:
    appends = tuple(procedure.appends)

    def step(state: dict[str, Any], names: tuple[str, ...], row: tuple[Any, ...]) -> Any:
        found = procedure.process(dict(zip(names, row, strict=True)), state)
        return None if found is None else tuple(found.get(name) for name in appends)

    return step


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
