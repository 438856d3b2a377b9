"""Run stream processors: what a query puts between its stream and its selection.

A processor takes one row with its kind and the values of its arguments, and appends to a chunk:
the row with attributes more, several rows, or none, now or when a timer fires. Its state is one
cell of the key's state. This module has the shape, those that split a value into rows, and
`deduplicate`; others have a module for each family.
"""

from __future__ import annotations

from typing import Any

from edgewise.errors import BadEvent
from edgewise.kernel.runtime import CURRENT, RESET, Chunk, Row, Runtime, State
from edgewise.plan.functions import java_regex, json_path, json_text
from edgewise.plan.functions.java_maps import in_map_order
from edgewise.plan.functions.java_text import show


class Processor:
    """The shape the others have."""

    def __init__(self, rt: Runtime, node: int, cell: int) -> None:
        self.rt, self.node, self.cell = rt, node, cell

    def fresh(self) -> Any:
        return None

    def process(
        self, state: State, kind: int, ts: int, row: Row, args: tuple[Any, ...], out: Chunk
    ) -> None:
        raise NotImplementedError

    def reset(self, state: State, ts: int, row: Row, out: Chunk) -> None:
        """The window before it begins anew."""
        out.append((RESET, ts, row))

    def end(self, state: State, out: Chunk) -> None:
        """The chunk is complete."""

    def timer(self, state: State, due: int, payload: Any, out: Chunk) -> None:
        """A moment this processor asked for."""


class Splitter(Processor):
    """Gives a row for each part of a value."""

    def process(
        self, state: State, kind: int, ts: int, row: Row, args: tuple[Any, ...], out: Chunk
    ) -> None:
        out.extend((kind, ts, (*row, *part)) for part in self.split(*args))

    def split(self, *args: Any) -> list[tuple[Any, ...]]:
        raise NotImplementedError


class TokenizeText(Splitter):
    def split(self, *args: Any) -> list[tuple[Any, ...]]:
        text, pattern, *distinct = args
        if text is None:
            raise BadEvent("str:tokenize: the text is null")
        parts = java_regex.split(text, pattern)
        return [(p,) for p in (dict.fromkeys(parts) if distinct and distinct[0] else parts)]


class TokenizeJson(Splitter):
    """The elements that a path finds, as text; without `fail` a null where there is none."""

    def split(self, *args: Any) -> list[tuple[Any, ...]]:
        source, path, *fail = args
        if source is None or path is None or source == "":
            raise BadEvent("json:tokenize: an argument is null or empty")
        document = json_text.parse(source) if isinstance(source, str) else source
        strict = not fail or bool(fail[0])
        try:
            found = json_path.read(document, path)
        except json_path.MissingPath:
            found = None
        if isinstance(found, list):
            return [(self.shown(item),) for item in found] or ([] if strict else [(None,)])
        if isinstance(found, dict):
            return [(self.shown(found),)]
        if isinstance(found, str):
            return [(found,)]
        return [] if strict or found is not None else [(None,)]

    def shown(self, item: Any) -> Any:
        return json_text.write(item)


class TokenizeJsonObject(TokenizeJson):
    def shown(self, item: Any) -> Any:
        return item


class TokenizeList(Splitter):
    """Index and value; of several lists the list of their values."""

    def split(self, *args: Any) -> list[tuple[Any, ...]]:
        for values in args:
            if not isinstance(values, list):
                raise BadEvent(f"list:tokenize takes lists, not {values!r}")
        if len(args) == 1:
            return list(enumerate(args[0]))
        size = max(map(len, args))
        return [(i, [v[i] if i < len(v) else None for v in args]) for i in range(size)]


class TokenizeMap(Splitter):
    """Key and value; of several maps the list of their values."""

    def split(self, *args: Any) -> list[tuple[Any, ...]]:
        for values in args:
            if not isinstance(values, dict):
                raise BadEvent(f"map:tokenize takes maps, not {values!r}")
        keys = in_map_order(dict.fromkeys(key for values in args for key in values))
        if len(args) == 1:
            return [(key, args[0].get(key)) for key in keys]
        return [(key, [values.get(key) for values in args]) for key in keys]


class Deduplicate(Processor):
    """The first event of a key passes; others of it not, for `span` ms. State: time by key."""

    def fresh(self) -> dict[Any, Any]:
        return {}

    def process(
        self, state: State, kind: int, ts: int, row: Row, args: tuple[Any, ...], out: Chunk
    ) -> None:
        held, (key, span) = state[self.cell], args
        if key is None:
            raise BadEvent("unique:deduplicate: the key is null")
        self._forget(held, ts, span)
        name = show(key)
        if kind == CURRENT and name not in held:
            held[name] = ts
            self.rt.arm(state, self.node, self.rt.now + span + 1, payload=span)
            out.append((kind, ts, row))

    def timer(self, state: State, due: int, payload: Any, out: Chunk) -> None:
        self._forget(state[self.cell], due, payload)

    def _forget(self, held: dict[Any, Any], now: int, span: int) -> None:
        while held and now - held[key := next(iter(held))] > span:
            del held[key]
