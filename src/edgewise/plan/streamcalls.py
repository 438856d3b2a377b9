"""Stream functions: they see each event and may append attributes to it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from edgewise.event.schema import Attribute
from edgewise.event.types import AttrType
from edgewise.plan.exprs import Expr
from edgewise.plan.functions import NUMBER, TEXT, TRUTH, Types
from edgewise.plan.procedures import Procedure
from edgewise.plan.processors import PROCESSORS, StreamProcessor


@dataclass(frozen=True, slots=True)
class StreamFunction:
    """`appends` are as many of these attributes as arguments were given, none where empty.

    A `processor` keeps state and says itself which attributes it adds.
    """

    name: str
    overloads: tuple[tuple[Types, ...], ...]
    usage: str
    appends: tuple[Attribute, ...] = ()
    procedure: Procedure | None = None
    processor: StreamProcessor | None = None

    def adds(self, args: tuple[Expr, ...]) -> tuple[Attribute, ...]:
        if self.processor is not None:
            return self.processor.adds(args)
        return self.appends if self.procedure else self.appends[: len(args)]

    def fits(self, given: tuple[AttrType, ...]) -> bool:
        """Whether one of the overloads takes arguments of these types."""
        variadic = self.processor is not None and self.processor.variadic
        for shape in self.overloads:
            more = len(given) - len(shape) if variadic else 0
            whole = (*shape, *[shape[-1]] * max(more, 0)) if shape else shape
            if len(whole) == len(given) and all(map(frozenset.__contains__, whole, given)):
                return True
        return False


_XYZ = tuple(Attribute(name, AttrType.DOUBLE) for name in ("x", "y", "z"))

STREAM_FUNCTIONS: Mapping[str, StreamFunction] = {
    function.name.lower(): function
    for function in (
        StreamFunction(
            "pol2Cart",
            ((NUMBER, NUMBER), (NUMBER, NUMBER, NUMBER)),
            "write #pol2Cart(theta, rho) or #pol2Cart(theta, rho, z)",
            _XYZ,
        ),
        StreamFunction(
            "log",
            ((), (TEXT,), (TRUTH,), (TEXT, TEXT), (TEXT, TRUTH), (TEXT, TEXT, TRUTH)),
            "write #log(), #log('message') or #log('INFO', 'message', true)",
        ),
        *(StreamFunction(p.name, p.overloads, p.usage, processor=p) for p in PROCESSORS),
    )
}


def with_procedures(procedures: Iterable[Procedure]) -> Mapping[str, StreamFunction]:
    """The built-in stream functions and these."""
    found = dict(STREAM_FUNCTIONS)
    for procedure in procedures:
        usage = f"write #{procedure.name}()"
        row = StreamFunction(procedure.name, ((),), usage, procedure.adds(), procedure)
        found[procedure.name.lower()] = row
    return found
