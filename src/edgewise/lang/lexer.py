"""Split text into tokens in one linear pass. Comments are kept aside, with offsets, for `fmt`.

A character that begins nothing is reported and skipped, so that the parser still sees the rest.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from edgewise.lang.report import Report
from edgewise.lang.source import At
from edgewise.lang.tokens import Kind, Token

_DECIMAL = r"(?:\d+(?:\.\d*)?|\.\d+)"
_POWER = r"(?:[eE][-+]?\d+)"
# A letter that ends a number must end the word too: `5d` is a double, `5days` is five days.
_TOKEN = re.compile(
    rf"""
    [ \t\r\n\v\f]*+
  (?:
    (?P<COMMENT>--[^\r\n]*|/\*(?s:.*?)(?:\*/|\Z))
  | (?P<WORD>[A-Za-z_][A-Za-z0-9_]*)
  | (?P<QUOTED>`[^`\n]+`)
  | (?P<FLOAT>{_DECIMAL}{_POWER}?[fF](?![A-Za-z0-9_]))
  | (?P<DOUBLE>{_DECIMAL}{_POWER}?[dD](?![A-Za-z0-9_])|{_DECIMAL}{_POWER}|\d*\.\d+)
  | (?P<LONG>\d+[lL](?![A-Za-z0-9_]))
  | (?P<INT>\d+)
  | (?P<TEXT>\"\"\"(?s:.*?)\"\"\")
  | (?P<STRING>'[^'"\r\n]*'|"[^"\r\n]*")
  | (?P<SCRIPT>\{{)
  | (?P<OP>\.\.\.|->|<=|>=|==|!=|[:;.()\[\],=*+?\-/%<>@\#!])
  | (?P<BLANK>\Z)
  | (?P<UNKNOWN>(?s:.))
  )""",
    re.VERBOSE,
)
WORDS_FOR_SIGNS = {"&&": "and", "||": "or"}
_SIGNS = "#!@"  # with a name behind them they mean something else than the name
_KINDS = {kind.name: kind for kind in Kind}
_SCRIPT_PART = re.compile(r"""[^{}"']+|"[^"\n]*"|'[^'\n]*'|["']""")


class Comment(NamedTuple):
    text: str
    start: int
    end: int


def tokenize(report: Report) -> tuple[list[Token], list[Comment]]:
    """Every token of the report's source, the last of kind END, and the comments between them."""
    text = report.source.text
    tokens: list[Token] = []
    comments: list[Comment] = []
    position = 0
    read = _TOKEN.match
    while match := read(text, position):
        group = match.lastgroup
        assert group is not None
        found, (start, position) = match[group], match.span(group)
        if group == "WORD":
            tokens.append(Token(Kind.WORD, found, start, position, found.lower()))
        elif group == "COMMENT":
            comments.append(Comment(found, start, position))
        elif group == "SCRIPT":
            position = _script_end(text, start, report)
            tokens.append(Token(Kind.SCRIPT, text[start + 1 : position - 1], start, position))
        elif group == "UNKNOWN":
            position = _skip_unknown(text, start, report, tokens)
        elif group == "BLANK":
            break
        else:
            if group == "QUOTED" and found[1] in _SIGNS:
                hint = "'#' marks inner streams, '!' fault streams, '@' annotations and queries"
                report.error((start, position), f"a name cannot begin with '{found[1]}'", hint)
            tokens.append(_lex_plain(group, found, (start, position)))
    tokens.append(Token(Kind.END, "", len(text), len(text)))
    return tokens, comments


def _lex_plain(group: str, found: str, at: At) -> Token:
    if group == "TEXT":
        return Token(Kind.STRING, found[3:-3], *at)
    if group in {"STRING", "QUOTED"}:
        return Token(_KINDS[group], found[1:-1], *at)
    return Token(_KINDS[group], found, *at)


def _skip_unknown(text: str, position: int, report: Report, tokens: list[Token]) -> int:
    """An open string takes the rest of its line; the parser then goes on with the next part."""
    char = text[position]
    if char in "'\"`":
        end = text.find("\n", position)
        end = len(text) if end < 0 else end
        hint = 'a string stays on one line; write """...""" for more, or to hold quotes'
        report.error((position, end), "this string is not closed", "" if char == "`" else hint)
        tokens += [Token(Kind.BROKEN, "", position, end), Token(Kind.OP, ";", end, end)]
        return end
    sign = text[position : position + 2]
    if word := WORDS_FOR_SIGNS.get(sign):
        report.error((position, position + 2), f"there is no '{sign}'", f"write '{word}'")
        tokens.append(Token(Kind.WORD, word, position, position + 2, word))
        return position + 2
    report.error((position, position + 1), f"unexpected character {char!r}")
    return position + 1


def _script_end(text: str, start: int, report: Report) -> int:
    """The offset after the brace that closes the one at `start`; quoted braces do not count."""
    depth, position = 0, start
    while position < len(text):
        char = text[position]
        if char == "{":
            depth += 1
        elif char == "}":
            depth -= 1
            if depth == 0:
                return position + 1
        else:
            part = _SCRIPT_PART.match(text, position)
            position = part.end() if part else position + 1
            continue
        position += 1
    report.error((start, start + 1), "this function body is not closed", "close it with '}'")
    return len(text)
