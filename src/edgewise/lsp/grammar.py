"""Build a TextMate grammar of SiddhiQL: the colours of an editor, from the compiler's own words.

It is printed and not kept as a file, so that it cannot fall behind the language. VS Code, Sublime
Text, TextMate, JetBrains and GitHub read this form. Used by `edgewise lsp --grammar`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from edgewise.event.types import AttrType
from edgewise.lang.tokens import KEYWORDS, UNIT_WORDS

SCOPE = "source.siddhi"
_TYPES = frozenset(t.value for t in AttrType)
_CONSTANTS = frozenset({"true", "false", "null"})
_OPERATORS = frozenset({"and", "or", "not", "in", "is"})


def build_grammar() -> dict[str, Any]:
    """The grammar as the value of a JSON file; its rules are tried in order."""
    words = KEYWORDS - _TYPES - _CONSTANTS - _OPERATORS
    return {
        "$schema": "https://raw.githubusercontent.com/martinring/tmlanguage/master/tmlanguage.json",
        "name": "SiddhiQL",
        "scopeName": SCOPE,
        "fileTypes": ["siddhi"],
        "patterns": [
            _rule("comment.line.double-dash", r"--.*$"),
            _range("comment.block", r"/\*", r"\*/"),
            _range("string.quoted.triple", '"""', '"""'),
            _rule("string.quoted.double", r'"[^"\n]*"'),
            _rule("string.quoted.single", r"'[^'\n]*'"),
            _rule("variable.other", r"`[^`\n]*`"),
            _rule("entity.name.tag.annotation", r"@\s*(?:app\s*:\s*)?[A-Za-z_]\w*"),
            _rule("constant.numeric", r"\b\d+(?:\.\d+)?(?:[eE][+-]?\d+)?[LlFfDd]?\b"),
            _rule("support.function.window", r"#\s*window\s*\.\s*[A-Za-z_]\w*(?::\w+)?"),
            _rule("support.function", r"#\s*[A-Za-z_]\w*(?::\w+)?(?=\s*\()"),
            _words("storage.type", _TYPES),
            _words("constant.language", _CONSTANTS),
            _words("keyword.operator.word", _OPERATORS),
            _words("keyword.control", words),
            _rule("constant.numeric.unit", rf"(?i)(?<=\d\s)(?:{_either(UNIT_WORDS)})\b"),
            _rule("entity.name.function", r"\b[A-Za-z_]\w*(?::\w+)?(?=\s*\()"),
            _rule("keyword.operator", r"->|==|!=|<=|>=|\.\.\.|[-+*/%<>=?]"),
        ],
    }


def _rule(scope: str, pattern: str) -> dict[str, str]:
    return {"name": f"{scope}.siddhi", "match": pattern}


def _range(scope: str, begin: str, end: str) -> dict[str, str]:
    return {"name": f"{scope}.siddhi", "begin": begin, "end": end}


def _words(scope: str, words: Iterable[str]) -> dict[str, str]:
    return _rule(scope, rf"(?i)\b(?:{_either(words)})\b(?!\s*\.\s*\w+\s*\()")


def _either(words: Iterable[str]) -> str:
    return "|".join(sorted(words, key=lambda word: (-len(word), word)))
