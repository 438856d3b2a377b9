"""Format the text of an app: `edgewise fmt`. Comments, names and strings stay as written.

It works on tokens, not on the tree, so nothing can get lost: keywords become lower case, each
clause gets its line, long lines are broken after commas and before `and`, `or` and `->`. Only
blank lines between statements are taken from the source, at most one in a row.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field

from edgewise.lang.lexer import Comment
from edgewise.lang.parse.app import Apps, parse_for_layout
from edgewise.lang.report import Report
from edgewise.lang.source import SourceText
from edgewise.lang.tokens import Kind, Token

WIDTH_MAX = 99
INDENT = "    "
CLAUSES = frozenset(
    {"select", "group", "having", "order", "limit", "output", "insert", "delete", "update"}
    | {"return", "aggregate", "begin"}
)
TIGHT_AFTER = frozenset({"(", "[", ".", "#", "!", "@", ":"})
TIGHT_BEFORE = frozenset({")", "]", ",", ";", ".", ":"})
NAMES = frozenset({Kind.WORD, Kind.QUOTED})


def format_app(text: str, file: str = "<app>") -> str:
    """The same app, laid out; AppError where it cannot be read."""
    report = Report(SourceText(text, file))
    parser = parse_for_layout(report)
    report.raise_errors()
    return _Page(parser, text).write()


@dataclass(slots=True)
class _Line:
    """One clause while it grows: pieces of text, and where it may be broken."""

    indent: int
    pieces: list[str] = field(default_factory=list)
    breaks: set[int] = field(default_factory=set)

    def physical(self) -> list[str]:
        """As many lines as it takes."""
        rows: list[str] = []
        prefix, start = INDENT * self.indent, 0
        while start < len(self.pieces):
            stop = self._stop(start, WIDTH_MAX - len(prefix))
            rows.append(prefix + "".join(self.pieces[start:stop]).strip())
            prefix, start = INDENT * (self.indent + 1), stop
        return rows

    def _stop(self, start: int, room: int) -> int:
        """The piece that begins the next line: at the last break that still fits."""
        used, best = 0, len(self.pieces)
        last_break = 0
        for index in range(start, len(self.pieces)):
            if index > start and index in self.breaks:
                last_break = index
            used += len(self.pieces[index])
            if used > room and last_break:
                return last_break
        return best


class _Page:
    def __init__(self, parser: Apps, text: str) -> None:
        self.parser = parser
        self.text = text
        self.rows: list[str] = []
        self.line = _Line(0)
        self.depth = 0  # of parentheses and brackets
        self.block = 0  # inside a partition
        self.heads = ""  # the keyword that began this statement
        self.last: Token | None = None
        self.last_index = -1
        heads = {"define", "from", "partition"}
        tokens = parser.tokens
        self.order = [i for i in sorted(parser.keywords) if tokens[i].word in heads]
        self.end = 0  # of what was written last, comments too
        self.commented = False  # whether that was a comment
        self.pending = ""  # a comment to the right, waiting for the sign that ends its line
        self.comments = list(parser.comments)
        self.next_comment = 0

    def write(self) -> str:
        for index, token in enumerate(self.parser.tokens):
            if self._closes(index, token) or self._ends_behind_comment(token):
                self._finish()
            self._comments_before(token)
            if token.kind is Kind.END:
                break
            if self.pending and token.value not in {";", ","}:
                self._pending_comment()
            self._token(index, token)
            if self.pending:
                self._pending_comment()
            self.end = token.end
        self._pending_comment()
        self._flush()
        return "\n".join(self.rows).strip("\n") + "\n" if self.rows else ""

    def _closes(self, index: int, token: Token) -> bool:
        """Whether the last statement of the app or of a partition ends here."""
        if token.kind is Kind.END:
            return True
        keyword = index in self.parser.keywords
        return keyword and token.word == "end" and bool(self.block) and not self.depth

    def _ends_behind_comment(self, token: Token) -> bool:
        """Whether a ';' follows a comment: behind a `--` it would become part of it."""
        if token.kind is not Kind.OP or token.value != ";" or self.depth:
            return False
        comments = self.comments[self.next_comment : self.next_comment + 1]
        return any(comment.start < token.start for comment in comments)

    def _finish(self) -> None:
        """The last ';' may be left out; it is written before any comment that follows."""
        if self.last is not None and self.last.value != ";":
            self._end_line()
            self._flush()
            self.last = Token(Kind.OP, ";", self.end, self.end)

    # Tokens.

    def _token(self, index: int, token: Token) -> None:
        keyword = token.word if index in self.parser.keywords else ""
        if token.kind is Kind.OP and token.value == ";" and not self.depth:
            self._end_of_statement(token, index)
            return
        if not self.heads and not self.line.pieces:
            self._blank_line_before(token)
        if keyword == "end" and not self.depth and self.block:
            self._close_block()
        elif self._starts_line(token, keyword):
            self._flush()
        if not self.depth and keyword in {"define", "from", "partition"} and not self.heads:
            self.heads = keyword
        text = keyword or self.text[token.start : token.end]
        self._add(text, space=self._space(index, token), can_break=self._can_break(token, keyword))
        if token.kind is Kind.OP:
            self.depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(token.value, 0)
        self.last, self.last_index, self.commented = token, index, False
        if keyword == "begin" and self.heads == "partition":
            self._flush()
            self.block, self.heads = 1, ""
            self.line = _Line(self.block)

    def _starts_line(self, token: Token, keyword: str) -> bool:
        if self.depth:
            return False
        if token.value == "@" and token.kind is Kind.OP:
            return True
        if not self.heads:
            return keyword in {"define", "from", "partition"}
        before = self.parser.tokens[self.last_index].word if self.last else ""
        if keyword == "insert" and before == "or":
            return False
        if self.heads == "define":
            return keyword in {"from", "select", "group", "aggregate"} and before != "define"
        return keyword in CLAUSES

    def _end_of_statement(self, token: Token, index: int) -> None:
        if self.last is not None and self.last.value != ";":
            self._end_line()
            self.last, self.last_index, self.commented = token, index, False
            self._flush()
        self.heads = ""

    def _close_block(self) -> None:
        self._flush()
        self.block = 0
        self.heads = "partition"
        self.line = _Line(0)

    def _blank_line_before(self, token: Token) -> None:
        """Kept where the author left one; queries always stand apart."""
        if not self.rows or not self.rows[-1] or self.rows[-1].strip() == "begin":
            return
        under_comment = self.last is None or self.commented
        query = token.word in {"from", "partition"} or token.value == "@"
        apart = query and not self.block and not under_comment and self._begins_query(token)
        if apart or self._blank(token.start):
            self.rows.append("")

    def _begins_query(self, token: Token) -> bool:
        """Whether the statement at hand is a query: annotations may stand before it."""
        if token.value != "@":
            return True
        index = bisect_right(self.order, self.last_index)
        return self.parser.tokens[self.order[index]].word != "define"

    def _blank(self, start: int) -> bool:
        """Whether the author left a blank line before this place."""
        lines = self.text[self.end : start].split("\n")
        return len(lines) > 2

    # Spaces.

    def _space(self, index: int, token: Token) -> bool:
        last = self.last
        if last is None or not self.line.pieces:
            return False
        role, last_role = self.parser.roles.get(index), self.parser.roles.get(self.last_index)
        if token.kind is Kind.OP and token.value in TIGHT_BEFORE:
            return False
        if last.kind is Kind.OP and (last.value in TIGHT_AFTER or last_role in {"sign", "tight"}):
            return last.value in {"*", "+", "?"} and last_role == "tight"
        if last.kind is Kind.OP and last.value == "=" and last_role != "assign":
            return False
        if self._inside_count(index):
            return False
        if token.kind is not Kind.OP:
            return True
        return self._space_before_sign(token, role)

    def _inside_count(self, index: int) -> bool:
        """`<2:5>` is written without spaces."""
        roles = self.parser.roles
        for back in range(index - 1, max(index - 5, -1), -1):
            role, value = roles.get(back), self.parser.tokens[back].value
            if role == "tight" and value == "<":
                return True
            if role == "close":
                return False
        return False

    def _space_before_sign(self, token: Token, role: str | None) -> bool:
        assert self.last is not None
        after_name = self.last.kind in NAMES and self.last_index not in self.parser.keywords
        after_operand = after_name or self.last.value in {")", "]", ">"} or self._closed_count()
        if role in {"tight", "close"}:
            return False
        if token.value == "=":
            return role == "assign"
        if token.value in {"#", "!"}:
            return not after_operand
        if token.value == "(":
            return role == "shape" or not after_name
        if token.value == "[":
            return not after_operand
        return True

    def _closed_count(self) -> bool:
        return self.parser.roles.get(self.last_index) in {"close", "tight"}

    def _can_break(self, token: Token, keyword: str) -> bool:
        if self.last is None:
            return False
        return self.last.value == "," or keyword in {"and", "or", "on"} or token.value == "->"

    # Lines.

    def _add(self, text: str, *, space: bool, can_break: bool = False) -> None:
        if can_break:
            self.line.breaks.add(len(self.line.pieces))
        self.line.pieces.append(f" {text}" if space else text)

    def _flush(self) -> None:
        self.rows += self.line.physical()
        indent = self.block
        self.line = _Line(indent)

    def _end_line(self) -> None:
        """The ';' of a statement; it never stands alone."""
        if self.line.pieces or not self.rows:
            self._add(";", space=False)
        else:
            self.rows[-1] += ";"

    def _pending_comment(self) -> None:
        if self.pending and self.line.pieces:
            self._add(self.pending, space=True)
            self._break()
        elif self.pending and "--" in self.rows[-1]:  # behind another it would become part of it
            self.rows.append(INDENT * self.line.indent + self.pending)
        elif self.pending:
            self.rows[-1] += f" {self.pending}"
        self.pending = ""

    # Comments.

    def _comments_before(self, token: Token) -> None:
        while self.next_comment < len(self.comments):
            comment = self.comments[self.next_comment]
            if comment.start > token.start:
                return
            self.next_comment += 1
            self._comment(comment)

    def _comment(self, comment: Comment) -> None:
        text = "\n".join(line.rstrip() for line in comment.text.splitlines())
        blank, before = self._blank(comment.start), self.end
        self.end, self.commented = comment.end, True
        if "\n" not in self.text[before : comment.start] and (self.rows or self.line.pieces):
            if text.startswith("--"):
                self._pending_comment()
                self.pending = text
            elif self.line.pieces:
                self._add(text, space=True)
            else:
                self.rows[-1] += f" {text}"
            return
        self._pending_comment()
        if self.line.pieces and self.heads:
            self._break()
        elif self.line.pieces:
            self._flush()
        elif self.rows and self.rows[-1] and blank:
            self.rows.append("")
        self.rows.append(INDENT * self.line.indent + text)

    def _break(self) -> None:
        """End the line here and go on with the same clause below, further in."""
        indent = self.line.indent
        self.rows += self.line.physical()
        self.line = _Line(max(indent, self.block + 1))
