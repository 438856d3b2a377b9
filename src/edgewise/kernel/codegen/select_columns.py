"""Write a select list over whole columns: attributes and aggregates as they are."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from edgewise.plan.exprs import Agg, Field
from edgewise.plan.nodes import Select

CALLS = {"count": "counts", "avg": "means", "sum": "sums"}


def is_plain(select: Select) -> bool:
    return all(isinstance(i.expr, Field | Agg) for i in select.items)


def columns_text(
    select: Select,
    names: Sequence[str],
    taken: Callable[[int], str],
    called: Callable[[str, str], str],
) -> str:
    """The list of columns: `taken` from a position among `names`, `called` with the name of an
    aggregate and the position of its argument, if it has one.
    """
    made = []
    for item in select.items:
        expr = item.expr
        if isinstance(expr, Field):
            made.append(taken(names.index(expr.name)))
            continue
        assert isinstance(expr, Agg)
        arg = expr.args[0] if expr.args else None
        position = str(names.index(arg.name)) if isinstance(arg, Field) else ""
        made.append(called(CALLS[expr.name.lower()], position))
    return f"[{', '.join(made)}]"
