"""Declare functions: what one takes and gives, its body, and what a null argument does.

A row serves the checker and all engines. Overloads that types cannot tell apart by place are
`shapes`: whole argument lists, of which one must fit. A `typed` body is given the types of its
arguments first, for Python has one float where the language has two, and text of a number
depends on its type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from edgewise.event.types import NUMERIC, AttrType, promote
from edgewise.plan.exprs import AggregateBody, Const, Expr

Types: TypeAlias = frozenset[AttrType]
Args: TypeAlias = tuple[Expr, ...]
Returns: TypeAlias = AttrType | Callable[[Args], AttrType]

STRING, INT, LONG = AttrType.STRING, AttrType.INT, AttrType.LONG
FLOAT, DOUBLE, BOOL, OBJECT = AttrType.FLOAT, AttrType.DOUBLE, AttrType.BOOL, AttrType.OBJECT

ANY: Types = frozenset(AttrType)
NUMBER: Types = frozenset(NUMERIC)
WHOLE: Types = frozenset({INT, LONG})
TEXT: Types = frozenset({STRING})
TRUTH: Types = frozenset({BOOL})
SET: Types = frozenset({OBJECT})

TYPE_NAMES = {t.value: t for t in AttrType if t is not OBJECT}


@dataclass(frozen=True, slots=True)
class Function:
    """`takes` has the legal types of each argument; the last `optional` may be left out.

    A `variadic` function repeats its last argument. `agree` gives the indexes of arguments that
    must have one type. `rule` finds what types cannot say and returns it as a sentence, or ''.
    `shapes`, where given, are the legal argument lists, instead of `takes`. A `clocked` body is
    given the event time before its arguments. Unless it `takes_null`, a body never sees a null
    argument: the result is null, or the event is dropped where the function `drops_null`. `body`
    computes an aggregate of the user's own. `fold` computes a call when the app is compiled, from
    the environment that the compiler was given.
    """

    name: str
    takes: tuple[Types, ...]
    returns: Returns
    optional: int = 0
    variadic: bool = False
    aggregate: bool = False
    agree: tuple[int, ...] | None = None
    rule: Callable[[Args], str] | None = None
    python: Callable[..., Any] | None = None
    spark: str = ""
    clocked: bool = False
    takes_null: bool = False
    drops_null: bool = False
    typed: bool = False
    shapes: tuple[tuple[Types, ...], ...] = ()
    body: AggregateBody | None = None
    fold: Callable[[Mapping[str, str], Args], Expr] | None = None
    samples: tuple[Any, ...] = ()  # values to check the laws of an aggregate with
    deterministic: bool = False  # of a function of the user's own: equal arguments, equal result

    def __call__(self, *args: Any) -> Any:
        """The Python body: a declared function can be called as before."""
        if self.python is None:
            raise TypeError(f"'{self.name}' has no body in Python")
        return self.python(*args)

    def type_of(self, args: Args) -> AttrType:
        return self.returns if isinstance(self.returns, AttrType) else self.returns(args)

    @property
    def least(self) -> int:
        if self.shapes:
            return min(map(len, self.shapes))
        return len(self.takes) - self.optional

    @property
    def most(self) -> int | None:
        if self.shapes:
            return max(map(len, self.shapes))
        return None if self.variadic else len(self.takes)

    def fits(self, given: tuple[AttrType, ...]) -> bool:
        """Whether one of the shapes takes arguments of these types."""
        return any(
            len(shape) == len(given)
            and all(t in legal for t, legal in zip(given, shape, strict=True))
            for shape in self.shapes
        )


class FunctionTable(Mapping[str, Function]):
    """Looked up by the exact name, then without regard to case: `kgToST` is not `kgTost`."""

    def __init__(
        self, functions: tuple[Function, ...], environment: Mapping[str, str] | None = None
    ) -> None:
        self.environment: Mapping[str, str] = environment or {}
        self._by_name = {f.name: f for f in functions}
        self._by_lower_name = {f.name.lower(): f for f in functions}

    def with_(self, *functions: Function) -> FunctionTable:
        """This table and some more; a new one may take the place of an old one."""
        taken = {f.name.lower() for f in functions}
        kept = (f for f in self._by_name.values() if f.name.lower() not in taken)
        return FunctionTable((*kept, *functions), self.environment)

    def within(self, environment: Mapping[str, str]) -> FunctionTable:
        """This table in an environment, whose properties are constants of an app."""
        return FunctionTable(tuple(self._by_name.values()), environment)

    def __getitem__(self, name: str) -> Function:
        return self._by_name.get(name) or self._by_lower_name[name.lower()]

    def __iter__(self) -> Iterator[str]:
        return (f.name for f in self._by_name.values())

    def __len__(self) -> int:
        return len(self._by_name)


def scalar(name: str, *takes: Types, returns: Returns, **more: Any) -> Function:
    return Function(name, takes, returns, **more)


def overloaded(name: str, *shapes: tuple[Types, ...], returns: Returns, **more: Any) -> Function:
    return Function(name, (), returns, shapes=shapes, **more)


def aggregate(name: str, *takes: Types, returns: Returns, **more: Any) -> Function:
    return Function(name, takes, returns, aggregate=True, **more)


# Types that depend on the arguments.


def same(args: Args) -> AttrType:
    return args[0].type


def second(args: Args) -> AttrType:
    return args[1].type


def summed(args: Args) -> AttrType:
    return LONG if args[0].type in WHOLE else DOUBLE


def rounded(args: Args) -> AttrType:
    return LONG if args[0].type in {LONG, DOUBLE} else INT


def promoted(args: Args) -> AttrType:
    found = args[0].type
    for arg in args[1:]:
        found = promote(found, arg.type)
    return found


def named(args: Args) -> AttrType:
    """The type that the second argument names."""
    assert isinstance(args[1], Const)
    return TYPE_NAMES[str(args[1].value).lower()]


def names_a_type(args: Args) -> str:
    kind = args[1]
    if not isinstance(kind, Const):
        return "the type must be a constant in quotes, such as 'double'"
    if str(kind.value).lower() not in TYPE_NAMES:
        return f"'{kind.value}' is not a type; use one of {', '.join(TYPE_NAMES)}"
    return ""
