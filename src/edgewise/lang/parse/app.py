"""Parse an app: its annotations, then definitions, then queries and partitions.

One broken part does not hide the next: the parser goes on after the next ';'.
"""

from __future__ import annotations

from edgewise.lang.lexer import Comment, tokenize
from edgewise.lang.parse.definitions import Definitions
from edgewise.lang.report import Report
from edgewise.lang.syntax.app import App, Definition
from edgewise.lang.syntax.expr import Expression
from edgewise.lang.syntax.query import Annotation, OnDemand, Partition, Query


class Apps(Definitions):
    comments: tuple[Comment, ...] = ()

    def parse_app(self) -> App:
        annotations: list[Annotation] = []
        definitions: list[Definition] = []
        executions: list[Query | Partition] = []
        while not self.at_end() and not self.report.full:
            if self.take_op(";"):
                continue
            with self.recover():
                own = self._parse_own_annotations(annotations)
                if own or not self.at_end():
                    self._parse_part(own, definitions, executions)
        if not (definitions or executions or self.report.failed):
            self.report.error((0, 0), "the app is empty", "define a stream and write a query")
        return App(tuple(annotations), tuple(definitions), tuple(executions), (0, 0))

    def _parse_own_annotations(self, of_the_app: list[Annotation]) -> tuple[Annotation, ...]:
        """The annotations in front of a part; those named `app:...` belong to the whole."""
        found = self.parse_annotations()
        of_the_app.extend(a for a in found if a.name.lower().startswith("app:"))
        return tuple(a for a in found if not a.name.lower().startswith("app:"))

    def _parse_part(
        self,
        annotations: tuple[Annotation, ...],
        definitions: list[Definition],
        executions: list[Query | Partition],
    ) -> None:
        if self.at_word("define"):
            at = self.token.at
            definitions.append(self.parse_definition(annotations))
            if executions:
                hint = "move it up: all definitions come first"
                self.report.error(at, "a definition stands after a query", hint)
        elif self.at_word("partition"):
            executions.append(self.parse_partition(annotations))
        elif self.at_word("from"):
            executions.append(self.parse_query(annotations))
        else:
            self.fail("'define', 'from' or 'partition'")
        self._expect_end_of_part()

    def _expect_end_of_part(self) -> None:
        if self.at_op(";") or self.at_end():
            return
        if self.at_word("define", "from", "partition") or self.at_op("@"):
            end = self.tokens[self.index - 1].end
            hint = "every definition, query and partition ends with ';'"
            self.report.error((end, end), "a ';' is missing here", hint)
            return
        self.fail("';' or the end of the app")


def parse_app(report: Report) -> App:
    """The tree of the report's source; problems go to the report."""
    return open_parser(report).parse_app()


def parse_on_demand(report: Report) -> OnDemand | None:
    """One on-demand query, None where it could not be read."""
    parser = open_parser(report)
    found: OnDemand | None = None
    with parser.recover():
        found = parser.parse_on_demand()
        parser.take_op(";")
        if not parser.at_end():
            parser.fail("the end of the query")
    return found


def parse_expression(report: Report) -> Expression | None:
    """One expression alone, None where it could not be read."""
    parser = open_parser(report)
    found: Expression | None = None
    with parser.recover():
        found = parser.parse_expression()
        if not parser.at_end():
            parser.fail("the end of the expression")
    return None if report.failed else found


def parse_for_layout(report: Report) -> Apps:
    """The parser after it has read an app: its tokens, comments and what each sign was."""
    parser = open_parser(report)
    parser.parse_app()
    return parser


def open_parser(report: Report) -> Apps:
    tokens, comments = tokenize(report)
    parser = Apps(tokens, report)
    parser.comments = tuple(comments)
    return parser
