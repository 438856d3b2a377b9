"""Bind functions, aggregates and procedures whose bodies come with the plan.

Generated code calls them by names that its writer allocates. A body is not asked about null unless
it says so: the result is null, or the event is dropped. A float result is rounded to 32 bits. An
aggregate that cannot take a value back is bound a second time, with the values that are in it
(`eep.retaining`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from edgewise.eep.retaining import Retaining
from edgewise.errors import BadEvent
from edgewise.event.types import AttrType
from edgewise.kernel.codegen.code_writer import CodeWriter
from edgewise.kernel.functions import java
from edgewise.plan.exprs import Agg, Call
from edgewise.plan.nodes import StreamCall
from edgewise.plan.procedures import Procedure


def call_text(w: CodeWriter, call: Call, args: list[str]) -> str:
    """The text of a call, whose body the writer binds.

    One name may stand for several bodies: that of an overloaded one is given the types of its
    arguments, and its result is rounded in one call and not in another.
    """
    assert call.body is not None
    types = tuple(a.type for a in call.args) if call.typed else ()
    rules = (call.takes_null, call.drops_null, call.type is AttrType.FLOAT)
    identity = (call.name, types, rules, id(call.body))
    name = w.bind(identity, call.name, _guarded(call, call.body))
    given = ["rt.now", *args] if call.clocked else args
    return f"{name}({', '.join(given)})"


def aggregate_name(w: CodeWriter, agg: Agg, *, retaining: bool) -> str:
    """The name of a user's own aggregate; `retaining`: of one that takes any value back."""
    identity = (agg.name, retaining, id(agg.body))
    hint = f"{agg.name}_retaining" if retaining else agg.name
    return w.bind(identity, hint, Retaining(agg.body) if retaining else agg.body)


def procedure_name(w: CodeWriter, call: StreamCall) -> str:
    """The name of a function that takes state, names and a row, and gives what to append."""
    assert call.procedure is not None
    identity = (call.name, id(call.procedure))
    return w.bind(identity, call.name, _stepped(call.procedure))


def _stepped(procedure: Procedure) -> Callable[..., Any]:
    appends = tuple(procedure.appends)

    def step(state: dict[str, Any], names: tuple[str, ...], row: tuple[Any, ...]) -> Any:
        found = procedure.process(dict(zip(names, row, strict=True)), state)
        return None if found is None else tuple(found.get(name) for name in appends)

    return step


def _guarded(call: Call, body: Callable[..., Any]) -> Callable[..., Any]:
    single = call.type is AttrType.FLOAT
    if call.typed:
        body = partial(body, tuple(a.type for a in call.args))
    if call.takes_null and not single:
        return body

    def guarded(*args: Any) -> Any:
        if not call.takes_null and any(arg is None for arg in args):
            if call.drops_null:
                raise BadEvent(f"{call.name}: an argument is null")
            return None
        value = body(*args)
        return java.f32(value) if single and value is not None else value

    return guarded
