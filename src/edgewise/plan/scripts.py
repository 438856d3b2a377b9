"""A function that an app defines itself, as something an engine can call and ship."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True, unsafe_hash=True)  # name and body stay; only `_compiled` is set later
class Script:
    """`body` is Python; its arguments are in the list `data`. Compiled when first called."""

    name: str
    body: str
    _compiled: Callable[[list[Any]], Any] | None = field(default=None, compare=False, repr=False)

    def __call__(self, *args: Any) -> Any:
        if self._compiled is None:
            space: dict[str, Any] = {}
            exec(compile(self.source(), f"<function {self.name}>", "exec"), space)  # noqa: S102
            self._compiled = space["body"]
        return self._compiled(list(args))

    def source(self) -> str:
        lines = textwrap.dedent(self.body).strip() or "pass"
        return f"def body(data):\n{textwrap.indent(lines, '    ')}\n"

    def __getstate__(self) -> tuple[str, str]:
        return self.name, self.body

    def __setstate__(self, state: tuple[str, str]) -> None:
        self.name, self.body = state
        self._compiled = None
