"""A function that an app defines itself, as something an engine can call and ship."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

Compiled = Callable[[list[Any]], Any]
CompileScript = Callable[[str, str], Compiled]  # from its name and source


@dataclass(slots=True, unsafe_hash=True)  # name and body stay; only what follows is set later
class Script:
    """`body` is Python; its arguments are in the list `data`. Compiled when first called.

    `compile_with` decides where it runs; None: in this process.
    """

    name: str
    body: str
    compile_with: CompileScript | None = field(default=None, compare=False, repr=False)
    _compiled: Compiled | None = field(default=None, compare=False, repr=False)

    def __call__(self, *args: Any) -> Any:
        if self._compiled is None:
            self._compiled = (self.compile_with or compile_here)(self.name, self.source())
        return self._compiled(list(args))

    def source(self) -> str:
        lines = textwrap.dedent(self.body).strip() or "pass"
        return f"def body(data):\n{textwrap.indent(lines, '    ')}\n"

    def __getstate__(self) -> tuple[str, str, CompileScript | None]:
        return self.name, self.body, self.compile_with

    def __setstate__(self, state: tuple[str, str, CompileScript | None]) -> None:
        self.name, self.body, self.compile_with = state
        self._compiled = None


def compile_here(name: str, source: str) -> Compiled:
    space: dict[str, Any] = {}
    exec(compile(source, f"<function {name}>", "exec"), space)  # noqa: S102
    compiled: Compiled = space["body"]
    return compiled
