"""A page of generated source: lines, indentation, fresh names."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterator
from contextlib import contextmanager

# Names the generated code uses for its own purposes; an attribute of that name gets a tail.
OWN_NAMES = frozenset({
    "S", "G", "rt", "chunk", "out", "kind", "ts", "row", "data", "groups", "group", "run",
    "offset", "clock", "at", "key", "due", "payload", "build", "bool", "int", "float", "str",
    "len", "list", "max", "min", "sum", "zip", "None", "C", "X", "R", "abs", "range", "held",
    "heap", "rows", "columns", "old", "slide", "batch", "pend", "emit", "java", "fn", "agg", "win",
    "bat", "ses", "pat", "ab", "tab", "acc", "cron", "vec", "f32", "deque", "repeat", "islice",
})  # fmt: skip


def local(name: str) -> str:
    """An attribute's name as a Python local."""
    plain = re.sub(r"\W", "_", name)
    if plain[:1].isdigit():
        plain = "_" + plain
    if keyword.iskeyword(plain) or plain in OWN_NAMES or re.fullmatch(r"[tq]\d+(_\w+)?", plain):
        return plain + "_"
    return plain


class Writer:
    def __init__(self) -> None:
        self.lines: list[str] = []
        self._depth = 0
        self._fresh = 0

    def line(self, text: str = "") -> None:
        self.lines.append("    " * self._depth + text if text else "")

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

    def fresh(self) -> str:
        """A name no attribute has."""
        self._fresh += 1
        return f"t{self._fresh}"

    def text(self) -> str:
        return "\n".join(self.lines) + "\n"
