"""Parse `@name(key='value', 'value', @nested(...))`; what a name means is decided in `lower`."""

from __future__ import annotations

from edgewise.lang.parse.expressions import Expressions
from edgewise.lang.syntax.query import Annotation
from edgewise.lang.tokens import Kind


class Annotations(Expressions):
    def parse_annotations(self) -> tuple[Annotation, ...]:
        found: list[Annotation] = []
        while self.at_op("@"):
            found.append(self._parse_annotation())
        return tuple(found)

    def _parse_annotation(self) -> Annotation:
        start = self.token.start
        self.expect_op("@")
        name = self.expect_name("the name of an annotation").value
        if self.take_op(":"):
            name = f"{name}:{self.expect_name('the name of an annotation').value}"
        pairs: list[tuple[str, str]] = []
        nested: list[Annotation] = []
        if self.token.kind is Kind.STRING:
            self.fail(f"'(' after '@{name}'", f"write @{name}('...')")
        if self.take_op("("):
            with self.nest():
                self._parse_member(pairs, nested)
                while self.take_op(","):
                    self._parse_member(pairs, nested)
            self.expect_op(")")
        return Annotation(name, tuple(pairs), tuple(nested), self.span_from(start))

    def _parse_member(self, pairs: list[tuple[str, str]], nested: list[Annotation]) -> None:
        if self.at_op("@"):
            nested.append(self._parse_annotation())
            return
        if self.token.kind is Kind.STRING and self.peek().value != "=":
            pairs.append(("", self.advance().value))
            return
        key = self._parse_key()
        self.expect_op("=")
        pairs.append((key, self.expect_string("a string in quotes")))

    def _parse_key(self) -> str:
        if self.token.kind is Kind.STRING:
            return self.advance().value
        parts = [self.expect_name("a key, a value in quotes, or '@'").value]
        while self.at_op(".", "-", ":"):
            parts += [self.advance().value, self.expect_name("the rest of the key").value]
        return "".join(parts)
