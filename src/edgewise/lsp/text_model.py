"""Answer what an editor asks about one text: what stands here, where it is defined, what fits.

A text that is being written is broken most of the time. So this reads tokens and those definitions
that can be read, and takes the streams that queries make from the last plan that compiled. The
statement around the cursor says which streams its attributes may come from. Pure; offsets count
characters. Used by the language server.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise

from edgewise.event.schema import Schema
from edgewise.lang.lower.known_annotations import SPELLED, TARGETS
from edgewise.lang.parse.app import open_parser
from edgewise.lang.report import Report
from edgewise.lang.source import At, SourceText
from edgewise.lang.syntax import app as written
from edgewise.lang.tokens import KEYWORDS, Kind, Token
from edgewise.lsp.signatures import write_function, write_stream_function, write_window
from edgewise.plan.functions import FUNCTIONS
from edgewise.plan.nodes import App
from edgewise.plan.streamcalls import STREAM_FUNCTIONS
from edgewise.plan.windows import WINDOWS

ANSWERS_MAX = 500  # completions of one answer
_WORDS = frozenset({Kind.WORD, Kind.QUOTED})
_KINDS: tuple[tuple[type, str], ...] = (
    (written.StreamDefinition, "stream"),
    (written.TableDefinition, "table"),
    (written.WindowDefinition, "window"),
    (written.TriggerDefinition, "trigger"),
    (written.FunctionDefinition, "function"),
    (written.AggregationDefinition, "aggregation"),
)
_BEFORE_NAMES = frozenset({"from", "join", "into", "update", "in", "delete"})


@dataclass(frozen=True, slots=True)
class Symbol:
    """Something with a name: a definition, or a stream that a query makes."""

    name: str
    kind: str
    at: At
    columns: tuple[tuple[str, str, At], ...] = ()  # name, type, place

    @property
    def text(self) -> str:
        inside = ", ".join(f"{name} {kind}" for name, kind, _ in self.columns)
        return (
            f"{self.kind} {self.name} ({inside})" if self.columns else f"{self.kind} {self.name}"
        )


@dataclass(frozen=True, slots=True)
class Completion:
    label: str
    kind: str  # of a Symbol, or: attribute, function, window, annotation, keyword
    detail: str = ""


@dataclass(slots=True)
class TextModel:
    """`app` is the last plan that this text, or an earlier state of it, compiled to."""

    text: str
    app: App | None = None
    tokens: list[Token] = field(init=False)
    symbols: dict[str, Symbol] = field(init=False)

    def __post_init__(self) -> None:
        parser = open_parser(Report(SourceText(self.text)))
        self.tokens = [t for t in parser.tokens if t.kind is not Kind.END]
        tree = parser.parse_app()
        self.symbols = {}
        for definition in tree.definitions:
            found = _read_symbol(definition)
            self.symbols.setdefault(found.name, found)
        self._add_written_streams()

    def _add_written_streams(self) -> None:
        schemas = {s.name: s.schema for s in self.app.streams} if self.app else {}
        for before, token in pairwise(self.tokens):
            if before.word == "into" and token.kind in _WORDS and token.value not in self.symbols:
                columns = _list_columns(schemas.get(token.value), token.at)
                self.symbols[token.value] = Symbol(token.value, "stream", token.at, columns)

    def outline(self) -> Iterator[Symbol]:
        yield from sorted(self.symbols.values(), key=lambda symbol: symbol.at)

    def describe(self, offset: int) -> str:
        """What the word at the offset is, with types; '' where nothing is known."""
        at = self._index_at(offset)
        if at is None:
            return ""
        call = self._describe_call(at)
        if call:
            return call
        word = self.tokens[at].value
        attributes = list(self._find_attributes(at))
        if self._is_after(at, ".") and attributes:
            return "\n".join(attributes)
        if (symbol := self._aliases(at).get(word)) is not None:
            return symbol.text if symbol.name == word else f"{word}: {symbol.text}"
        return "\n".join(attributes)

    def define(self, offset: int) -> At | None:
        """Where the word at the offset is defined."""
        at = self._index_at(offset)
        if at is None:
            return None
        word = self.tokens[at].value
        owners = self._owners(at)
        for owner in owners:
            for name, _, place in owner.columns:
                if name == word and (self._is_after(at, ".") or word not in self.symbols):
                    return place
        alias = self._alias_place(at, word)
        if word in self.symbols:
            return self.symbols[word].at
        return alias

    def complete(self, offset: int) -> list[Completion]:
        """What may stand here, by what stands before it."""
        before = [t for t in self.tokens if t.end < offset or (t.end == offset and not _open(t))]
        last = before[-1] if before else None
        sign = last.value if last is not None and last.kind is Kind.OP else ""
        at = len(before)
        if sign == "@":
            return [Completion(SPELLED.get(n, n), "annotation") for n in TARGETS]
        if sign == "#":
            return [*_list_windows("window."), *_list_stream_functions()]
        if sign == ".":
            owner = before[-2] if len(before) > 1 else None
            if owner is not None and owner.word == "window":
                return list(_list_windows(""))
            return list(self._list_attributes(self._owners(at)))
        if sign == ":" and len(before) > 1:
            return list(_list_functions(f"{before[-2].value}:"))
        if sign in {"->", "~"} or (last is not None and last.word in _BEFORE_NAMES):
            return [Completion(s.name, s.kind, s.text) for s in self.symbols.values()]
        return list(self._list_anything(at))[:ANSWERS_MAX]

    def _list_anything(self, at: int) -> Iterator[Completion]:
        yield from self._list_attributes(self._owners(at))
        yield from (Completion(n, s.kind, s.text) for n, s in self._aliases(at).items())
        yield from (Completion(word, "keyword") for word in sorted(KEYWORDS))
        yield from _list_functions("")

    def _list_attributes(self, owners: Iterable[Symbol]) -> Iterator[Completion]:
        seen = set()
        for owner in owners:
            for name, kind, _ in owner.columns:
                if name not in seen:
                    seen.add(name)
                    yield Completion(name, "attribute", f"{kind}, of {owner.name}")

    def _index_at(self, offset: int) -> int | None:
        for at, token in enumerate(self.tokens):
            if token.kind in _WORDS and token.start <= offset <= token.end:
                return at
        return None

    def _is_after(self, at: int, sign: str) -> bool:
        return at > 0 and self.tokens[at - 1].kind is Kind.OP and self.tokens[at - 1].value == sign

    def _describe_call(self, at: int) -> str:
        """The function, window or stream function that is called here."""
        token = self.tokens[at]
        space = f"{self.tokens[at - 2].value}:" if at > 1 and self._is_after(at, ":") else ""
        following = self.tokens[at + 1] if at + 1 < len(self.tokens) else None
        spaces = following is not None and following.value == ":" and at + 2 < len(self.tokens)
        if not space and spaces:  # the cursor is on the name space
            space, token = f"{token.value}:", self.tokens[at + 2]
        name = f"{space}{token.value}"
        start = at - 2 if space and self._is_after(at, ":") else at
        if self._is_after(start, ".") and self.tokens[start - 2].word == "window":
            window = WINDOWS.get(name.lower())
            return write_window(window) if window else ""
        if self._is_after(start, "#"):
            found = STREAM_FUNCTIONS.get(name.lower())
            return write_stream_function(found) if found else ""
        called = space or (following is not None and following.value == "(")
        return write_function(FUNCTIONS[name]) if called and name in FUNCTIONS else ""

    def _find_attributes(self, at: int) -> Iterator[str]:
        word = self.tokens[at].value
        for owner in self._owners(at):
            for name, kind, _ in owner.columns:
                if name == word:
                    yield f"{owner.name}.{name} {kind}"

    def _owners(self, at: int) -> list[Symbol]:
        """What the word's attributes may belong to: what stands before its dot, or the sources."""
        aliases = self._aliases(at)
        if self._is_after(at, "."):
            place = at - 2
            while place > 0 and self.tokens[place].value == "]":  # e1[last].v
                place -= 3
            owner = aliases.get(self.tokens[place].value) if place >= 0 else None
            return [owner] if owner else []
        seen: dict[str, Symbol] = {s.name: s for s in aliases.values()}
        return list(seen.values())

    def _aliases(self, at: int) -> dict[str, Symbol]:
        """Names of the statement around a token: its sources, and what they are called there."""
        found: dict[str, Symbol] = {}
        for place in self._statement(at):
            token = self.tokens[place]
            symbol = self.symbols.get(token.value) if token.kind in _WORDS else None
            if symbol is None or self._is_after(place, "."):
                continue
            found[symbol.name] = symbol
            if place > 1 and self._is_after(place, "="):
                found[self.tokens[place - 2].value] = symbol
            if (alias := self._name_after(place)) is not None:
                found[alias.value] = symbol
        return found

    def _name_after(self, place: int) -> Token | None:
        """The name of `stream#window.time(1 min) as name`."""
        depth = 0
        for token, following in pairwise(self.tokens[place + 1 :]):
            depth += (token.value in {"(", "["}) - (token.value in {")", "]"})
            if depth == 0 and token.word == "as":
                return following
            if depth < 0 or token.value in {";", ",", "->"}:
                return None
            if depth == 0 and token.word in KEYWORDS - {"window"}:
                return None
        return None

    def _alias_place(self, at: int, word: str) -> At | None:
        for place in self._statement(at):
            token = self.tokens[place]
            if token.value == word and token.kind in _WORDS and place > 0:
                following = self.tokens[place + 1] if place + 1 < len(self.tokens) else None
                if self.tokens[place - 1].word == "as" or (following and following.value == "="):
                    return token.at
        return None

    def _statement(self, at: int) -> range:
        start = end = min(at, len(self.tokens))
        while start > 0 and self.tokens[start - 1].value != ";":
            start -= 1
        while end < len(self.tokens) and self.tokens[end].value != ";":
            end += 1
        return range(start, end)


def _open(token: Token) -> bool:
    """Whether the next character would belong to it: a word is still being written."""
    return token.kind in _WORDS


def _read_symbol(definition: written.Definition) -> Symbol:
    kind = next(name for cls, name in _KINDS if isinstance(definition, cls))
    columns = getattr(definition, "columns", ())
    listed = tuple((c.name, c.type.value, c.at) for c in columns)
    return Symbol(definition.name.text, kind, definition.name.at, listed)


def _list_columns(schema: Schema | None, at: At) -> tuple[tuple[str, str, At], ...]:
    return tuple((a.name, a.type.value, at) for a in schema.attributes) if schema else ()


def _list_windows(lead: str) -> Iterator[Completion]:
    for window in WINDOWS.values():
        yield Completion(f"{lead}{window.name}", "window", write_window(window).split("\n")[0])


def _list_stream_functions() -> Iterator[Completion]:
    for found in STREAM_FUNCTIONS.values():
        yield Completion(found.name, "function", write_stream_function(found).split("\n")[0])


def _list_functions(space: str) -> Iterator[Completion]:
    for name in FUNCTIONS:
        if name.startswith(space) or not space:
            detail = write_function(FUNCTIONS[name]).split("\n")[0]
            yield Completion(name.removeprefix(space), "function", detail)
