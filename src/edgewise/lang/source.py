"""Substitute `${NAME}` in the text of an app, and turn offsets into lines and columns.

Everything after the lexer carries offsets; lines and columns are only worked out for a problem.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field

from edgewise.errors import Span

At = tuple[int, int]  # offsets of the first character and of the one after the last
NOWHERE: At = (0, 0)

_VARIABLE = re.compile(r"\$\{([^}\s]*)\}")
_LINE_END = re.compile(r"\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")  # as str.splitlines


@dataclass(slots=True)
class SourceText:
    text: str
    file: str = "<app>"
    _lines: list[int] = field(default_factory=list)

    def span(self, at: At) -> Span:
        """Where a person finds it; what runs over several lines is marked on its first."""
        if not self._lines:
            self._lines = [0, *(m.end() for m in _LINE_END.finditer(self.text))]
        start, end = min(at[0], len(self.text)), at[1]
        line = bisect_right(self._lines, start)
        first = self._lines[line - 1]
        next_line = self._lines[line] - 1 if line < len(self._lines) else len(self.text)
        return Span(line, start - first + 1, max(1, min(end, next_line) - start))


def substitute(text: str, variables: Mapping[str, str]) -> tuple[str, list[tuple[str, At]]]:
    """The text with each `${NAME}` replaced, and the names that had no value with their places."""
    missing: list[tuple[str, At]] = []

    def value(match: re.Match[str]) -> str:
        name = match[1]
        if name not in variables:
            missing.append((name, match.span()))
            return match[0]
        return variables[name]

    return _VARIABLE.sub(value, text), missing
