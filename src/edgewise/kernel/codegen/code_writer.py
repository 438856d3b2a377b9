"""Write generated source: lines, indentation, names, and the objects it is loaded with.

One writer belongs to one source. It gives out the stems of the app's things, temporaries, and
names for Python objects that the text calls (functions of users), so that whoever loads the source
finds all of them in `bound`.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from edgewise.kernel.codegen.name_allocator import Stem, Stems


class CodeWriter:
    def __init__(self) -> None:
        self.lines: list[str] = []
        self.stems = Stems()
        self.bound: dict[str, Any] = {}  # what the source needs in its globals, by name
        self._depth = 0
        self._temporaries = 0

    def line(self, text: str = "") -> None:
        self.lines.append("    " * self._depth + text if text else "")

    def lines_of(self, before: str, lines: list[str], after: str = "") -> None:
        """An expression of several lines, with what stands before and after it."""
        first, *rest = lines
        self.line(before + first)
        for text in rest[:-1]:
            self.line(text)
        if rest:
            self.line(rest[-1] + after)

    def assign(self, names: Iterable[str], values: Iterable[str]) -> None:
        """One assignment of these values to these names; nothing where there are none."""
        left, right = ", ".join(names), ", ".join(values)
        if left:
            self.line(f"{left} = {right}")

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """`head:` and what is written inside it, one step to the right."""
        self.line(head + ":")
        self._depth += 1
        before = len(self.lines)
        yield
        if len(self.lines) == before:
            self.line("pass")
        self._depth -= 1

    def temporary(self) -> str:
        """A name for a value inside an expression."""
        self._temporaries += 1
        return f"t{self._temporaries}"

    def bind(self, identity: Hashable, hint: str, value: Any) -> str:
        """A name by which the source calls this object."""
        name = self.stems.allocate(Stem.FUNCTION, identity, hint)
        self.bound.setdefault(name, value)
        return name

    def text(self) -> str:
        return "\n".join(self.lines) + "\n"


def tuple_text(values: Iterable[str]) -> str:
    """The text of a tuple, of one value too."""
    listed = list(values)
    return f"({', '.join(listed)}{',' if len(listed) == 1 else ''})"


def comment_text(text: str) -> str:
    """A comment that stays on its line, whatever users' names are in it."""
    return "# " + "".join(c if c.isprintable() else " " for c in text)
