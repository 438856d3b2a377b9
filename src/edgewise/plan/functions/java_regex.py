r"""Translate regular expressions of Java to those of the `regex` package, and apply them.

Both are backtracking engines with possessive quantifiers, atomic groups, nested character classes
and named groups; what differs is translated: `\Q..\E`, classes of characters by their Java names,
`.` and `$` at Java's line ends, and `$1` in replacements. `\d`, `\w`, `\s` and `\b` mean ASCII, as
in Java. Used by `str:` and `regex:` functions.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import regex

from edgewise.errors import BadEvent
from edgewise.plan.exprs import Const
from edgewise.plan.functions.table import STRING, Args

PATTERNS_MAX = 256  # compiled expressions kept
_LINE_ENDS = r"\n\r\u0085\u2028\u2029"
_CLASSES = {
    "d": "0-9",
    "w": "A-Za-z0-9_",
    "s": r"\t\n\x0b\f\r\x20",
    "h": r"\x20\t\xa0\u1680\u180e\u2000-\u200a\u202f\u205f\u3000",
    "v": r"\n\x0b\f\r\u0085\u2028\u2029",
}
_POSIX = {
    "Lower": "a-z",
    "Upper": "A-Z",
    "ASCII": r"\x00-\x7f",
    "Alpha": "A-Za-z",
    "Digit": "0-9",
    "Alnum": "A-Za-z0-9",
    "Punct": r"!-/:-@\[-`{-~",
    "Graph": "!-~",
    "Print": r"\x20-~",
    "Blank": r"\x20\t",
    "Cntrl": r"\x00-\x1f\x7f",
    "XDigit": "0-9a-fA-F",
    "Space": r"\t\n\x0b\f\r\x20",
}
_JAVA_NAMES = {
    "javaLowerCase": r"\p{Ll}",
    "javaUpperCase": r"\p{Lu}",
    "javaWhitespace": r"\p{White_Space}",
    "javaLetter": r"\p{L}",
    "javaDigit": r"\p{Nd}",
    "javaLetterOrDigit": r"[\p{L}\p{Nd}]",
    "IsAlphabetic": r"\p{Alphabetic}",
    "IsDigit": r"\p{Nd}",
    "IsLetter": r"\p{L}",
    "IsPunctuation": r"\p{P}",
    "IsWhite_Space": r"\p{White_Space}",
    "IsUppercase": r"\p{Uppercase}",
    "IsLowercase": r"\p{Lowercase}",
}


def find_problem(pattern: str) -> str:
    """Why it is no regular expression, '' where it is one."""
    try:
        compile_pattern(pattern)
    except BadEvent as why:
        return str(why)
    return ""


def has_pattern(index: int) -> Callable[[Args], str]:
    """A rule: a constant at this index must be a regular expression."""

    def rule(args: Args) -> str:
        arg = args[index]
        if not isinstance(arg, Const) or arg.type is not STRING:
            return ""
        return find_problem(str(arg.value))

    return rule


@lru_cache(maxsize=PATTERNS_MAX)
def compile_pattern(pattern: str) -> regex.Pattern[str]:
    try:
        return regex.compile(_Translation(pattern).text(), regex.VERSION1)
    except (regex.error, IndexError) as why:
        raise BadEvent(f"'{pattern}' is no regular expression: {why}") from why


class _Translation:
    """One pass over the pattern; `dotall` follows the flags that are on."""

    def __init__(self, pattern: str) -> None:
        self.pattern, self.at = pattern, 0
        self.flags = [frozenset[str]()]  # of each open group

    def text(self) -> str:
        out: list[str] = []
        while self.at < len(self.pattern):
            out.append(self._next())
        return "".join(out)

    def _next(self) -> str:
        char = self.pattern[self.at]
        if char == "\\":
            return self._escape(inside=False)
        if char == "[":
            return self._set()
        if char == "(":
            return self._group()
        self.at += 1
        if char == ")" and len(self.flags) > 1:
            self.flags.pop()
        return self._plain(char, self.flags[-1])

    def _plain(self, char: str, flags: frozenset[str]) -> str:
        """A character that is no escape, class or group."""
        if "x" in flags and (char == "#" or char.isspace()):
            if char == "#":
                end = self.pattern.find("\n", self.at)
                self.at = len(self.pattern) if end < 0 else end
            return ""
        if char == ".":
            line = "[^\\n]" if "d" in flags else f"[^{_LINE_ENDS}]"
            return "(?s:.)" if "s" in flags else line
        if char == "$":
            return self._line_end()
        if char == "^" and "m" in flags:
            return rf"(?:^|(?<=[{_LINE_ENDS}])(?!\Z)(?<!\r(?=\n)))"
        return char

    def _line_end(self) -> str:
        last = rf"(?=(?:\r\n|[{_LINE_ENDS}])?\Z)"
        if "m" in self.flags[-1]:
            return rf"(?=[{_LINE_ENDS}]|\Z)"
        return last

    def _group(self) -> str:
        found = regex.match(r"\(\?([idmsuxU]*)(?:-([idmsuxU]+))?([:)])", self.pattern[self.at :])
        if found is None or not (found[1] or found[2] or found[3] == ":"):
            self.flags.append(self.flags[-1])
            self.at += 1
            return "("
        self.at += found.end()
        flags = (self.flags[-1] | set(found[1])) - set(found[2] or "")
        fold = "i" if "i" in flags else ""
        if found[3] == ":":
            self.flags.append(flags)
            return f"(?{fold}:" if fold else "(?:"
        changed = ("i" in flags) != ("i" in self.flags[-1])
        self.flags[-1] = flags
        if not changed:
            return ""
        return "(?i)" if fold else "(?-i)"

    def _escape(self, *, inside: bool) -> str:
        rest = self.pattern[self.at + 1 :]
        if not rest:
            raise BadEvent(f"'{self.pattern}' ends in a lone backslash")
        char = rest[0]
        if char == "Q":
            end = rest.find("\\E")
            quoted = rest[1:end] if end >= 0 else rest[1:]
            self.at += 1 + (end + 2 if end >= 0 else len(rest))
            return "".join(f"\\{c}" if not c.isalnum() and c.isascii() else c for c in quoted)
        named = regex.match(r"([pP])(?:\{(?:Is|In)?(\w+)=?(\w*)\}|(\w))", rest)
        if named is not None:
            self.at += 1 + named.end()
            return _property(named[0], negated=char == "P", inside=inside)
        self.at += 2
        if char in _CLASSES:
            return _CLASSES[char] if inside else f"[{_CLASSES[char]}]"
        if char.lower() in _CLASSES and char != "H":
            return f"[^{_CLASSES[char.lower()]}]"
        if char == "H":
            return f"[^{_CLASSES['h']}]"
        return self._single(char)

    def _single(self, char: str) -> str:
        """One character, an anchor or a group that is named again."""
        special = {
            "z": r"\Z",
            "Z": rf"(?=(?:\r\n|[{_LINE_ENDS}])?\Z)",
            "e": r"\x1b",
            "R": rf"(?:\r\n|[{_LINE_ENDS}\x0b\f])",
            "b": r"(?a:\b)",
            "B": r"(?a:\B)",
        }
        if char in special:
            return special[char]
        if char == "x" and self.pattern[self.at : self.at + 1] == "{":
            end = self.pattern.index("}", self.at)
            code = int(self.pattern[self.at + 1 : end], 16)
            self.at = end + 1
            return f"\\U{code:08x}"
        if char == "k":
            end = self.pattern.index(">", self.at)
            name = self.pattern[self.at + 1 : end]
            self.at = end + 1
            return f"(?P={name})"
        if char == "0":
            digits = regex.match(r"[0-3]?[0-7]{1,2}", self.pattern[self.at :])
            if digits is None:
                raise BadEvent(f"'{self.pattern}' has an octal character without digits")
            self.at += digits.end()
            return f"\\x{int(digits[0], 8):02x}"
        if char.isalpha() and char not in "tnrfaxucAGdDsSwW":
            raise BadEvent(f"'{self.pattern}' has an unknown escape '\\{char}'")
        return f"\\{char}"

    def _set(self) -> str:
        """A class of characters; sets inside it and `&&` mean the same in both."""
        self.at += 1
        out = ["["]
        if self.pattern[self.at] == "^":
            out.append("^")
            self.at += 1
        first = True
        while True:
            char = self.pattern[self.at]
            if char == "]" and not first:
                self.at += 1
                return "".join([*out, "]"])
            first = False
            if char == "\\":
                out.append(self._escape(inside=True))
            elif char == "[":
                out.append(self._set())
            elif self.pattern.startswith("&&", self.at):
                out.append("&&")
                self.at += 2
            else:
                self.at += 1
                out.append(f"\\{char}" if char in "]|~#" or char == "&" else char)


def _property(text: str, *, negated: bool, inside: bool) -> str:
    name = text[1:].strip("{}")
    if name in _POSIX:
        if negated:
            return f"[^{_POSIX[name]}]"
        return _POSIX[name] if inside else f"[{_POSIX[name]}]"
    found = _JAVA_NAMES.get(name)
    if found is not None:
        return f"[^{found}]" if negated else found
    plain = name.removeprefix("Is") if name.startswith("Is") else name
    if name.startswith("In"):
        plain = f"Block={name[2:]}"
    if name.split("=")[0] in {"script", "sc", "block", "blk", "general_category", "gc"}:
        plain = name
    return f"\\{'P' if negated else 'p'}{{{plain}}}"


def matches(pattern: str, text: str) -> bool:
    return compile_pattern(pattern).fullmatch(text) is not None


def replace(text: str, pattern: str, replacement: str, count: int = 0) -> str:
    """`$1` and `${name}` in the replacement are groups, as in Java."""
    compiled = compile_pattern(pattern)
    return compiled.sub(lambda found: _expand(found, replacement), text, count=count)


def _expand(found: regex.Match[str], replacement: str) -> str:
    out: list[str] = []
    at = 0
    while at < len(replacement):
        char = replacement[at]
        at += 1
        if char == "\\":
            if at == len(replacement):
                raise BadEvent("the replacement ends in a lone backslash")
            out.append(replacement[at])
            at += 1
        elif char == "$":
            at = _expand_group(found, replacement, at, out)
        else:
            out.append(char)
    return "".join(out)


def _expand_group(found: regex.Match[str], replacement: str, at: int, out: list[str]) -> int:
    group: Any
    named = regex.match(r"\{([A-Za-z][A-Za-z0-9]*)\}", replacement[at:])
    if named is not None:
        group, at = named[1], at + named.end()
        if group not in found.re.groupindex:
            raise BadEvent(f"the replacement names the group '{group}', which is not there")
    else:
        if not replacement[at : at + 1].isdigit():
            raise BadEvent("'$' in a replacement is followed by a group; write \\$ for itself")
        group, at = int(replacement[at]), at + 1
        if group > found.re.groups:
            raise BadEvent(f"the replacement names group {group}, which is not there")
        while replacement[at : at + 1].isdigit():  # further digits, as long as such a group is
            longer = group * 10 + int(replacement[at])
            if longer > found.re.groups:
                break
            group, at = longer, at + 1
    out.append(found[group] or "")
    return at


def split(text: str, pattern: str) -> list[str]:
    """`String.split`: nothing empty at the end, nor in front of an empty match at the start."""
    parts: list[str] = []
    at = 0
    for found in compile_pattern(pattern).finditer(text):
        if found.end() == 0:
            continue
        parts.append(text[at : found.start()])
        at = found.end()
    if not parts and at == 0:
        return [text]
    parts.append(text[at:])
    while parts and not parts[-1]:
        parts.pop()
    return parts
