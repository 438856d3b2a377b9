"""Stream functions: they see each event and may append attributes to it."""

from __future__ import annotations

from dataclasses import dataclass

from edgewise.event.schema import Attribute
from edgewise.event.types import AttrType
from edgewise.plan.functions import NUMBER, TEXT, TRUTH, Types


@dataclass(frozen=True, slots=True)
class StreamFunction:
    """`appends` are as many of these attributes as arguments were given, none where empty."""

    name: str
    overloads: tuple[tuple[Types, ...], ...]
    usage: str
    appends: tuple[Attribute, ...] = ()

    def adds(self, given: int) -> tuple[Attribute, ...]:
        return self.appends[:given]


_XYZ = tuple(Attribute(name, AttrType.DOUBLE) for name in ("x", "y", "z"))

STREAM_FUNCTIONS = {
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
    )
}
