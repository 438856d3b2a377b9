"""Allocate the Python names of generated code, so that a user's name never meets one of ours.

Users call attributes, streams, aliases, tables and functions what they like: `row`, `len`,
`class`, `c_id`. Generated code is Python, so each of these needs a name there. Three kinds of
names are kept apart by how they look:

    name                 is                                        unique because
    a_price, o_total     a value in a local of one function        allocated here, a clash gets _2
    q0_alerts, s2_login  a thing of the app, at the top level      numbered; the rest is to read
    held, t1, arg1_0     our own                                   no letter, digits, underscore

`USER_NAME` matches every name of the first two rows and none of the third. What follows the
number of a stem is free: `s0_login` and `s0_login_feed` belong to the one stream with number 0.

Used by every module that writes code; `CodeWriter` holds the stems of one source.
"""

from __future__ import annotations

import re
from collections.abc import Hashable
from enum import StrEnum

USER_NAME = re.compile(r"[a-z][0-9]*_")  # how every name begins that a user had a part in
HINT_CHARS_MAX = 60  # of a user's name, for the reader; unique it is without


class Local(StrEnum):
    """Prefixes of values in locals."""

    ROW = "a_"  # an attribute, read from a row
    EVENT = "c_"  # an attribute of the event at hand, from its column
    ARRAY = "v_"  # a whole column as an array
    OUTPUT = "o_"  # an item of the select list


class Stem(StrEnum):
    """Letters of the things of an app."""

    QUERY = "q"
    STREAM = "s"
    PARTITION = "p"
    TABLE = "t"
    WINDOW = "w"
    AGGREGATION = "b"
    TRIGGER = "g"
    FUNCTION = "f"


def sanitise(name: str) -> str:
    """The part of a name that every Python accepts behind a prefix."""
    return re.sub(r"[^A-Za-z0-9_]", "_", name)[:HINT_CHARS_MAX]


class LocalNames:
    """The locals of one kind in one function, or in functions that never share a scope."""

    def __init__(self, prefix: Local) -> None:
        self._prefix = prefix
        self._names: dict[Hashable, str] = {}
        self._taken: set[str] = set()

    def allocate(self, identity: Hashable, *hints: str) -> str:
        """The local of this value, always the same one. The first hint that is free is taken."""
        known = self._names.get(identity)
        if known is not None:
            return known
        wanted = [self._prefix + sanitise(hint) for hint in hints]
        name = next((w for w in wanted if w not in self._taken), "")
        number = 2
        while not name:
            numbered = f"{wanted[0]}_{number}"
            name = numbered if numbered not in self._taken else ""
            number += 1
        self._taken.add(name)
        self._names[identity] = name
        return name


class Stems:
    """The names of an app's things in one source."""

    def __init__(self) -> None:
        self._names: dict[tuple[Stem, Hashable], str] = {}
        self._numbers: dict[Stem, int] = {}
        self._by_number: dict[str, str] = {}  # letter and number -> stem

    def allocate(self, letter: Stem, identity: Hashable, hint: str) -> str:
        """The stem of this thing, always the same one."""
        known = self._names.get((letter, identity))
        if known is not None:
            return known
        number = self._numbers.get(letter, 0)
        self._numbers[letter] = number + 1
        name = self._names[letter, identity] = f"{letter}{number}_{sanitise(hint)}"
        self._by_number[f"{letter}{number}"] = name
        return name

    def without_names(self, text: str) -> str:
        """The text with each stem as its letter only, as it would be in any other source."""

        def shorten(found: re.Match[str]) -> str:
            stem = self._by_number.get(found[1], "")
            return found[0].replace(stem, found[1][0], 1) if stem else found[0]

        return re.sub(r"\b([a-z][0-9]+)_\w*", shorten, text)
