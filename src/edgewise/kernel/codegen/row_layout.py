"""Say where the values of a query's slots are in a row, and which local each has in a loop."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from edgewise.kernel.codegen.expr_text import ExprText
from edgewise.kernel.codegen.name_allocator import Local, LocalNames
from edgewise.plan.exprs import Expr, Field, SlotIsNull, SlotTime, walk

Key = tuple[str, str, int | None]
IS_NULL, TIME = "`is null`", "`time`"  # no name holds a backtick, not even a quoted one


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


class RowLayout:
    """Places in a row by slot, attribute and index."""

    def __init__(self, positions: Iterable[Key] = ()) -> None:
        self.positions: dict[Key, int] = {}
        self.locals: dict[Key, str] = {}
        self._allocator = LocalNames(Local.ROW)
        self.width = 0
        for key in positions:
            self.append(key)

    def append(self, key: Key) -> None:
        """One more value at the end of the row."""
        self.positions.setdefault(key, self.width)
        self.width += 1
        slot, name, index = key
        hint = name.strip("`")
        indexed = "" if index is None else f"_{index}".replace("-", "last")
        self.locals[key] = self._allocator.allocate(key, hint, f"{slot}_{hint}{indexed}")

    def used(self, *exprs: Expr | None) -> list[Key]:
        """What these expressions read from the row, in its order."""
        found = {key for key in keys_of(*exprs) if key in self.positions}
        return sorted(found, key=self.positions.__getitem__)

    def unpack(self, used: list[Key]) -> str:
        """One assignment that makes locals of these values."""
        if not used:
            return ""
        positions = [self.positions[key] for key in used]
        left = ", ".join(self.locals[key] for key in used)
        if len(used) > 1 and positions == list(range(self.width)):
            return f"{left} = row"
        return f"{left} = {', '.join(f'row[{position}]' for position in positions)}"

    def code(self, expr: Expr) -> ExprText:
        key = key_of(expr)
        if key is not None and key in self.locals:
            return ExprText(self.locals[key])
        if isinstance(expr, SlotTime):
            return ExprText("ts", nullable=False)
        if isinstance(expr, SlotIsNull):
            return ExprText("False", nullable=False)
        raise LookupError(f"no value for {expr!r}")
