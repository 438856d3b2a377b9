"""Where the values of a query's slots are in a row, and the local each has in a loop."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from edgewise.engines.kernel.exprs import Code
from edgewise.engines.kernel.writer import local
from edgewise.plan.exprs import Expr, Field, SlotIsNull, SlotTime, walk

Key = tuple[str, str, int | None]
IS_NULL, TIME = "@is null", "@time"  # no attribute is named so


def key_of(expr: Expr) -> Key | None:
    """What a row must hold for this expression; None for one that is computed."""
    match expr:
        case Field():
            return expr.slot, expr.name, expr.index
        case SlotIsNull():
            return expr.slot, IS_NULL, expr.index
        case SlotTime() if expr.slot:
            return expr.slot, TIME, expr.index
        case _:
            return None


def keys_of(*exprs: Expr | None) -> Iterator[Key]:
    for expr in exprs:
        for node in walk(expr) if expr is not None else ():
            key = key_of(node)
            if key is not None:
                yield key


class Names:
    """Places in a row by slot, attribute and index."""

    def __init__(self, places: Iterable[Key] = ()) -> None:
        self.places: dict[Key, int] = {}
        self.locals: dict[Key, str] = {}
        self._taken: set[str] = set()
        self.width = 0
        for key in places:
            self.append(key)

    def append(self, key: Key) -> None:
        """One more value at the end of the row."""
        self.places.setdefault(key, self.width)
        self.width += 1
        name = local(key[1])
        if name in self._taken:
            tail = "" if key[2] is None else f"_{str(key[2]).replace('-', 'm')}"
            name = local(f"{key[0]}_{key[1]}{tail}")
        while name in self._taken:
            name += "_"
        self._taken.add(name)
        self.locals.setdefault(key, name)

    def used(self, *exprs: Expr | None) -> list[Key]:
        """What these expressions read from the row, in its order."""
        found = {key for key in keys_of(*exprs) if key in self.places}
        return sorted(found, key=self.places.__getitem__)

    def unpack(self, used: list[Key]) -> str:
        """One assignment that makes locals of these values."""
        if not used:
            return ""
        places = [self.places[key] for key in used]
        left = ", ".join(self.locals[key] for key in used)
        if len(used) > 1 and places == list(range(self.width)):
            return f"{left} = row"
        return f"{left} = {', '.join(f'row[{place}]' for place in places)}"

    def code(self, expr: Expr) -> Code:
        key = key_of(expr)
        if key is not None and key in self.locals:
            return Code(self.locals[key])
        if isinstance(expr, SlotTime):
            return Code("ts", nullable=False)
        if isinstance(expr, SlotIsNull):
            return Code("False", nullable=False)
        raise LookupError(f"no value for {expr!r}")
