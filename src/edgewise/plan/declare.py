"""Declare functions and aggregates of one's own, with names for types: what a library user writes.

    @function("my:twice", "number", returns="same")
    def twice(x):
        return 2 * x

    @aggregate("spread", "number", returns="double", samples=(1, 2.5, -3))
    class Spread(eep.Aggregate):
        ...

Both give rows of the table of functions (`functions.py`). A function becomes its row, which can
still be called; an aggregate stays what it is and carries its row, so that windows of `eep` take
it as before. The node finds both where `--functions` points.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from edgewise.errors import SetupError
from edgewise.event.types import AttrType
from edgewise.plan.functions import (
    ANY,
    FUNCTIONS,
    NUMBER,
    Function,
    FunctionTable,
    Returns,
    Types,
    same,
)
from edgewise.plan.procedures import Procedure

A = TypeVar("A")
ROW = "_edgewise_function"  # the attribute that an aggregate carries its row in
TYPE_SETS: dict[str, Types] = {
    "number": NUMBER,
    "any": ANY,
    **{kind.value: frozenset({kind}) for kind in AttrType},
}


def function(
    name: str,
    *takes: str,
    returns: str,
    spark: str = "",
    takes_null: bool = False,
    clocked: bool = False,
    deterministic: bool = False,
) -> Callable[[Callable[..., Any]], Function]:
    """A decorator: the Python function is `name` in an app.

    `takes` and `returns` are types: int, long, float, double, bool, string, object; an argument
    may also be `number` or `any`, a result `same` as the first argument. A null argument makes the
    result null unless it `takes_null`; a `clocked` function is given the event time first. `spark`
    names an expression of Spark that gives the same values. `deterministic` says that equal
    arguments always give an equal result: a sink needs that to promise recovery='precise'.

    >>> @edgewise.function("my:twice", "number", returns="same")
    ... def twice(x):
    ...     return 2 * x
    >>> twice(4)
    8
    """

    def declare(python: Callable[..., Any]) -> Function:
        return Function(
            name,
            tuple(_types(name, kind) for kind in takes),
            _returned(name, returns),
            python=python,
            spark=spark,
            takes_null=takes_null,
            clocked=clocked,
            deterministic=deterministic,
        )

    return declare


def aggregate(
    name: str, *takes: str, returns: str, samples: tuple[Any, ...] = ()
) -> Callable[[A], A]:
    """A decorator: the class of an aggregate, or an instance, is `name` in an app.

    Types as for `function`. With `samples`, values to try, its laws are checked when it is loaded.
    Several arguments come to `accumulate` as one tuple. It is also a merge at the edge, where it
    has `merge`: `conflate='merge(span)'`.

    >>> @edgewise.aggregate("span", "number", returns="double", samples=(1, 2.5, -3))
    ... class Span(edgewise.Aggregate):
    ...     invertible = False
    ...     def init(self):
    ...         return ()
    ...     def accumulate(self, state, value):
    ...         return self.merge(state, (value, value))
    ...     def merge(self, a, b):
    ...         return (min(a[0], b[0]), max(a[1], b[1])) if a and b else a or b
    ...     def emit(self, state):
    ...         return float(state[1] - state[0]) if state else None
    >>> text = "define stream S (v int); from S select span(v) as s insert into O;"
    >>> edgewise.App(text, functions=[Span]).send("S", [(1,), (5,), (6,)]).data()
    [(0.0,), (4.0,), (5.0,)]
    """

    def declare(given: A) -> A:
        try:
            body: Any = given() if isinstance(given, type) else given
        except TypeError as error:
            raise SetupError(
                f"aggregate '{name}': its class needs arguments ({error}); declare an instance"
            ) from None
        missing = [verb for verb in ("init", "accumulate", "emit") if not hasattr(body, verb)]
        if missing:
            raise SetupError(
                f"aggregate '{name}': it has no '{missing[0]}'; derive it from edgewise.Aggregate"
            )
        row = Function(
            name,
            tuple(_types(name, kind) for kind in takes),
            _returned(name, returns),
            aggregate=True,
            body=body,
            samples=samples,
        )
        setattr(given, ROW, row)
        return given

    return declare


def row_of(thing: object) -> Function | None:
    """The row of a function or an aggregate that is declared here; None for all else."""
    if isinstance(thing, Function):
        return thing
    found = getattr(thing, "__dict__", {}).get(ROW)
    return found if isinstance(found, Function) else None


def collect_functions(things: Iterable[object]) -> tuple[FunctionTable, tuple[Procedure, ...]]:
    """The table of functions with these, and the procedures among them."""
    rows: list[Function] = []
    procedures: list[Procedure] = []
    for thing in things:
        row = row_of(thing)
        if row is not None:
            rows.append(row)
        elif isinstance(thing, Procedure):
            procedures.append(thing)
        elif isinstance(thing, type) and issubclass(thing, Procedure):
            procedures.append(thing())
        else:
            raise SetupError(
                f"{thing!r} is no function of an app: declare it with @edgewise.function(...) or "
                "@edgewise.aggregate(...), or derive it from edgewise.Procedure"
            )
    return (FUNCTIONS.with_(*rows) if rows else FUNCTIONS), tuple(procedures)


def _types(name: str, kind: str) -> Types:
    if kind not in TYPE_SETS:
        raise SetupError(f"'{name}' takes '{kind}': use one of {', '.join(TYPE_SETS)}")
    return TYPE_SETS[kind]


def _returned(name: str, kind: str) -> Returns:
    if kind == "same":
        return same
    known = [t.value for t in AttrType]
    if kind not in known:
        raise SetupError(f"'{name}' returns '{kind}': use 'same' or one of {', '.join(known)}")
    return AttrType(kind)
