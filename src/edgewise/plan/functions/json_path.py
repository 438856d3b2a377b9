"""Read, set and add by JSONPath, as the original's library does.

A definite path (names and single indexes) gives one value or `MissingPath`; any other gives the
list of what it finds. Supported: `$`, `.name`, `['a','b']`, `[0]`, `[-1]`, `[0,1]`, `[1:3]`,
`*`, `..`, filters `[?(@.a > 1 && ...)]` and the functions at the end of a path.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from edgewise.errors import BadEvent
from edgewise.plan.exprs import COMPARISONS
from edgewise.plan.functions import java_regex
from edgewise.plan.functions.java_text import show

PATHS_MAX = 256  # paths kept as read


class MissingPath(BadEvent):
    """A definite path leads to nothing."""


@dataclass(frozen=True, slots=True)
class Step:
    """One part of a path: a kind and what it names."""

    kind: str  # names, indexes, slice, any, deep, filter, function
    values: tuple[Any, ...] = ()


ElementRef = tuple[Any, Any]  # what holds it, and its name or index there


@lru_cache(maxsize=PATHS_MAX)
def parse_path(path: str) -> tuple[Step, ...]:
    text = path.strip()
    if not text:
        raise BadEvent("a JSONPath is not empty")
    if text[0] not in "$@":
        text = f"$.{text}"
    steps: list[Step] = []
    at = 1
    while at < len(text):
        at = _parse_step(text, at, steps)
    return tuple(steps)


def _parse_step(text: str, at: int, steps: list[Step]) -> int:
    if text.startswith("..", at):
        steps.append(Step("deep"))
        at += 2
        if at >= len(text):
            raise BadEvent(f"the JSONPath '{text}' ends in '..'")
        return at if text[at] == "[" else _parse_name(text, at, steps)
    if text[at] == ".":
        return _parse_name(text, at + 1, steps)
    if text[at] == "[":
        return _parse_bracket(text, at, steps)
    raise BadEvent(f"the JSONPath '{text}' is not read at character {at}")


def _parse_name(text: str, at: int, steps: list[Step]) -> int:
    found = re.compile(r"\*|([^.\[\]()*]+)(\([^)]*\))?").match(text, at)
    if found is None:
        raise BadEvent(f"the JSONPath '{text}' has no name at character {at}")
    if found[0] == "*":
        steps.append(Step("any"))
    elif found[2] is not None:
        steps.append(Step("function", (found[1].strip(), found[2][1:-1])))
    else:
        name = found[1]
        if name != name.strip() or " " in name:
            raise BadEvent(f"the JSONPath '{text}' has blanks in a name: write ['{name}']")
        steps.append(Step("names", (name,)))
    return found.end()


def _parse_bracket(text: str, at: int, steps: list[Step]) -> int:
    inside, end = _inside(text, at)
    plain = inside.strip()
    if plain == "*":
        steps.append(Step("any"))
    elif plain.startswith("?"):
        steps.append(Step("filter", (_parse_filter(plain[1:].strip()),)))
    elif plain[:1] in {"'", '"'}:
        names = re.findall(r"'((?:[^'\\]|\\.)*)'|\"((?:[^\"\\]|\\.)*)\"", plain)
        steps.append(Step("names", tuple((a or b).replace("\\", "") for a, b in names)))
    elif ":" in plain:
        parts = [p.strip() for p in plain.split(":")]
        if len(parts) != 2 or not all(re.fullmatch(r"-?\d*", p) for p in parts):
            raise BadEvent(f"the JSONPath '{text}' has no slice '{plain}'")
        steps.append(Step("slice", tuple(int(p) if p else None for p in parts)))
    elif re.fullmatch(r"-?\d+(\s*,\s*-?\d+)*", plain):
        steps.append(Step("indexes", tuple(int(p) for p in plain.split(","))))
    else:
        raise BadEvent(f"the JSONPath '{text}' has no part '[{plain}]'")
    return end


def _inside(text: str, at: int) -> tuple[str, int]:
    """What stands in the brackets that open here, and where it goes on behind them."""
    depth, quote = 0, ""
    for i in range(at, len(text)):
        char = text[i]
        if quote:
            quote = "" if char == quote and text[i - 1] != "\\" else quote
        elif char in "'\"":
            quote = char
        elif char == "[":
            depth += 1
        elif char == "]":
            depth -= 1
            if depth == 0:
                return text[at + 1 : i], i + 1
    raise BadEvent(f"the JSONPath '{text}' has an open bracket")


def is_definite(steps: tuple[Step, ...]) -> bool:
    return all(
        (step.kind in {"names", "indexes"} and len(step.values) == 1) or step.kind == "function"
        for step in steps
    )


def read(document: Any, path: str) -> Any:
    steps = parse_path(path)
    function = steps[-1] if steps and steps[-1].kind == "function" else None
    found = [_value(p) for p in _find(document, steps[:-1] if function else steps)]
    definite = is_definite(steps)
    if definite and not found:
        raise MissingPath(f"there is nothing at '{path}'")
    if function is not None:
        return _apply(function, found[0] if is_definite(steps[:-1]) else found)
    return found[0] if definite else found


def find_elements(document: Any, path: str) -> list[ElementRef]:
    """Where the path leads, to be set; the whole document is held by a list of one."""
    steps = parse_path(path)
    found = list(_find(document, steps))
    if is_definite(steps) and not found:
        raise MissingPath(f"there is nothing at '{path}'")
    return found


def _value(element: ElementRef) -> Any:
    holder, name = element
    return holder[name]


def _find(document: Any, steps: tuple[Step, ...]) -> Iterator[ElementRef]:
    found: list[ElementRef] = [([document], 0)]
    definite = is_definite(steps)
    for step in steps:
        found = [p for element in found for p in _step(_value(element), element, step, document)]
        if definite and not found:
            return iter(())
    return iter(found)


def _step(value: Any, element: ElementRef, step: Step, root: Any) -> Iterator[ElementRef]:
    match step.kind:
        case "names" if isinstance(value, dict):
            yield from ((value, name) for name in step.values if name in value)
        case "indexes" if isinstance(value, list):
            for index in step.values:
                at = index + len(value) if index < 0 else index
                if 0 <= at < len(value):
                    yield value, at
        case "slice" if isinstance(value, list):
            start, end = step.values
            yield from ((value, i) for i in range(*slice(start, end).indices(len(value))))
        case "any":
            yield from _children(value)
        case "deep":
            yield from _below(value, element)
        case "filter":
            inside = _children(value) if isinstance(value, list) else iter([element])
            yield from (p for p in inside if step.values[0](_value(p), root))


def _children(value: Any) -> Iterator[ElementRef]:
    if isinstance(value, dict):
        yield from ((value, name) for name in value)
    elif isinstance(value, list):
        yield from ((value, i) for i in range(len(value)))


def _below(value: Any, element: ElementRef) -> Iterator[ElementRef]:
    """It and all that is inside it, parents first."""
    yield element
    for child in _children(value):
        yield from _below(_value(child), child)


# Functions at the end of a path.


def _apply(step: Step, value: Any) -> Any:
    name = step.values[0]
    if name in {"length", "size"}:
        return len(value) if isinstance(value, list | dict | str) else None
    if name == "keys":
        return list(value) if isinstance(value, dict) else None
    if name in {"first", "last"} and isinstance(value, list) and value:
        return value[0 if name == "first" else -1]
    if name == "index" and isinstance(value, list):
        return value[int(step.values[1])]
    if name == "concat":
        return "".join(show(v) for v in value if isinstance(v, str)) if value else ""
    numbers = [float(v) for v in value if _is_number(v)] if isinstance(value, list) else []
    folds: dict[str, Callable[[list[float]], float]] = {
        "min": min,
        "max": max,
        "sum": sum,
        "avg": lambda v: sum(v) / len(v),
        "stddev": lambda v: math.sqrt(sum(x * x for x in v) / len(v) - (sum(v) / len(v)) ** 2),
    }
    if name in folds and numbers:
        return float(folds[name](numbers))
    raise BadEvent(f"the JSONPath function '{name}' has nothing to work on")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


# Filters.

Test = Callable[[Any, Any], bool]
_TERM = re.compile(
    r"""\s*(?:(?P<op>==|!=|<=|>=|=~|<|>|&&|\|\||!|\(|\)|\bin\b|\bnin\b|\bsize\b|\bempty\b)
    |(?P<path>[@$](?:\.\.?[\w*]+(?:\([^)]*\))?|\[[^\]]*\])*)
    |(?P<text>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")
    |(?P<regex>/(?:[^/\\]|\\.)+/i?)
    |(?P<list>\[[^\]]*\])
    |(?P<number>-?\d+(?:\.\d+)?)
    |(?P<word>true|false|null))""",
    re.VERBOSE,
)


def _parse_filter(text: str) -> Test:
    terms: list[tuple[str, str]] = []
    at = 0
    while at < len(text):
        found = _TERM.match(text, at)
        if found is None:
            if text[at:].strip():
                raise BadEvent(f"the filter '{text}' is not read at character {at}")
            break
        kind = str(found.lastgroup)
        terms.append((kind, found[kind]))
        at = found.end()
    test, rest = _parse_or(terms, text)
    if rest:
        raise BadEvent(f"the filter '{text}' does not end")
    return test


Terms = list[tuple[str, str]]


def _parse_or(terms: Terms, text: str) -> tuple[Test, Terms]:
    test, terms = _parse_and(terms, text)
    while terms and terms[0] == ("op", "||"):
        other, terms = _parse_and(terms[1:], text)
        test = _either(test, other)
    return test, terms


def _either(left: Test, right: Test) -> Test:
    return lambda value, root: left(value, root) or right(value, root)


def _parse_and(terms: Terms, text: str) -> tuple[Test, Terms]:
    test, terms = _parse_one(terms, text)
    while terms and terms[0] == ("op", "&&"):
        other, terms = _parse_one(terms[1:], text)
        test = _both(test, other)
    return test, terms


def _both(left: Test, right: Test) -> Test:
    return lambda value, root: left(value, root) and right(value, root)


def _parse_one(terms: Terms, text: str) -> tuple[Test, Terms]:
    if not terms:
        raise BadEvent(f"the filter '{text}' is not complete")
    if terms[0] == ("op", "!"):
        test, terms = _parse_one(terms[1:], text)
        return (lambda value, root: not test(value, root)), terms
    if terms[0] == ("op", "("):
        test, terms = _parse_or(terms[1:], text)
        if not terms or terms[0] != ("op", ")"):
            raise BadEvent(f"the filter '{text}' has an open parenthesis")
        return test, terms[1:]
    left = terms[0]
    if len(terms) < 2 or terms[1][0] != "op" or terms[1][1] in {"&&", "||", ")"}:
        return (lambda value, root: _exists(left, value, root)), terms[1:]
    if len(terms) < 3:
        raise BadEvent(f"the filter '{text}' is not complete")
    op, right = terms[1][1], terms[2]
    return (lambda value, root: _compare(op, left, right, value, root)), terms[3:]


_MISSING = object()


def _operand(term: tuple[str, str], value: Any, root: Any) -> Any:
    kind, text = term
    if kind == "path":
        try:
            return read(value if text[0] == "@" else root, f"${text[1:]}")
        except BadEvent:
            return _MISSING
    if kind == "text":
        return text[1:-1].replace("\\'", "'").replace('\\"', '"')
    if kind == "number":
        return float(text)
    if kind == "list":
        return [part.strip().strip("'\"") for part in text[1:-1].split(",")]
    return {"true": True, "false": False, "null": None}.get(text, text)


def _exists(term: tuple[str, str], value: Any, root: Any) -> bool:
    return _operand(term, value, root) is not _MISSING


def _compare(
    op: str, left: tuple[str, str], right: tuple[str, str], value: Any, root: Any
) -> bool:
    a, b = _operand(left, value, root), _operand(right, value, root)
    if op == "=~":
        pattern, _, flags = b[1:].rpartition("/")
        prefix = "(?i)" if "i" in flags else ""
        return isinstance(a, str) and java_regex.matches(prefix + pattern, a)
    if op in {"in", "nin"}:
        return (show(a) in [show(x) for x in b]) == (op == "in")
    if op == "size":
        return isinstance(a, list | str) and len(a) == b
    if op == "empty":
        return isinstance(a, list | str | dict) and (len(a) == 0) == b
    if op in {"==", "!="}:
        same = (
            (a == b and isinstance(a, bool) == isinstance(b, bool)) if a is not _MISSING else False
        )
        return same == (op == "==")
    if not (_is_number(a) and _is_number(b)) and not (isinstance(a, str) and isinstance(b, str)):
        return False
    return bool(COMPARISONS[op](a, b))
