"""Write the signatures of functions, windows and stream functions, for hovers and completion.

They come from the tables that the checker uses, so that an editor shows what `check` accepts. Used
by the language server.
"""

from __future__ import annotations

from edgewise.event.types import AttrType
from edgewise.plan.functions import ANY, NUMBER, Types
from edgewise.plan.functions.table import Function
from edgewise.plan.streamcalls import StreamFunction
from edgewise.plan.windows import WindowSpec

_NAMED: dict[Types, str] = {ANY: "any", NUMBER: "number", frozenset({AttrType.OBJECT}): "object"}


def write_types(types: Types) -> str:
    if types in _NAMED:
        return _NAMED[types]
    return "|".join(t.value for t in AttrType if t in types)


def write_function(function: Function) -> str:
    """One line for each list of arguments that is legal."""
    result = function.returns.value if isinstance(function.returns, AttrType) else "by arguments"
    kind = " (aggregate)" if function.aggregate else ""
    if function.shapes:
        lists = [", ".join(map(write_types, shape)) for shape in function.shapes]
    else:
        needed = len(function.takes) - function.optional
        words = [
            write_types(types) if at < needed else f"[{write_types(types)}]"
            for at, types in enumerate(function.takes)
        ]
        lists = [", ".join([*words, "..."] if function.variadic else words)]
    return "\n".join(f"{function.name}({text}) -> {result}{kind}" for text in lists)


def write_window(window: WindowSpec) -> str:
    lines = []
    for overload in window.overloads:
        words = [f"{p.name} {write_types(p.types)}" for p in overload]
        words += [f"{p.name} {write_types(p.types)}, ..." for p in window.repeats]
        lines.append(f"#window.{window.name}({', '.join(words)})")
    return "\n".join(lines)


def write_stream_function(function: StreamFunction) -> str:
    lists = [", ".join(map(write_types, shape)) for shape in function.overloads]
    adds = ", ".join(f"{a.name} {a.type.value}" for a in function.appends)
    lines = [f"#{function.name}({text})" for text in lists]
    return "\n".join([*lines, f"adds {adds}"] if adds else lines)
