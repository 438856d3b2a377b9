"""Collect the problems of one app, so that one run reports them all.

A check that cannot go on calls `fail`, which notes the problem and raises `Refused`; the clause
above it catches that with `attempt` and goes on with the next clause.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from itertools import islice
from typing import NoReturn

from edgewise.errors import AppError, Problem, Span
from edgewise.lang.source import At, SourceText

PROBLEMS_MAX = 50  # more than a person reads; a broken file must not flood a terminal
NEAREST_MAX = 1_000  # names that a wrong one is compared with


class Refused(Exception):
    """What cannot go on; its problem is already in the report, or follows from one that is."""


class _Attempt:
    def __enter__(self) -> None:
        return

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> bool:
        return kind is not None and issubclass(kind, Refused)


class Report:
    def __init__(self, source: SourceText) -> None:
        self.source = source
        self.torn = False  # parts of the app could not be read: a name may be defined in one
        self._errors: list[Problem] = []
        self._warnings: list[Problem] = []

    def error(self, at: At, message: str, hint: str = "") -> None:
        if self.full:
            return
        problem = Problem(self.source.span(at), message, hint)
        if problem not in self._errors:
            self._errors.append(problem)

    def warn(self, at: At, message: str, hint: str = "") -> None:
        self.warn_at(self.source.span(at), message, hint)

    def warn_at(self, span: Span, message: str, hint: str = "") -> None:
        problem = Problem(span, message, hint, severity="warning")
        if len(self._warnings) < PROBLEMS_MAX and problem not in self._warnings:
            self._warnings.append(problem)

    def fail(self, at: At, message: str, hint: str = "") -> NoReturn:
        self.error(at, message, hint)
        raise Refused

    def check_room(self) -> None:
        """Refused where no further problem would be told: a hint for it would cost time only."""
        if self.full:
            raise Refused

    def check_whole(self) -> None:
        """Refused where what is missing may stand in a part that could not be read."""
        if self.torn:
            raise Refused

    def attempt(self) -> _Attempt:
        """Go on after this block even when something in it was refused."""
        return _Attempt()

    @property
    def failed(self) -> bool:
        return bool(self._errors)

    @property
    def full(self) -> bool:
        return len(self._errors) >= PROBLEMS_MAX

    def errors(self) -> tuple[Problem, ...]:
        return tuple(sorted(self._errors, key=_problem_order))

    def warnings(self) -> tuple[Problem, ...]:
        return tuple(sorted(self._warnings, key=_problem_order))

    def raise_errors(self) -> None:
        if self._errors:
            raise AppError(self.errors(), self.source.text, self.source.file)


def _problem_order(problem: Problem) -> tuple[int, int]:
    return problem.span.line, problem.span.column


def suggest_nearest(name: str, known: Iterable[str]) -> str:
    """A hint with the closest known name, empty where none is close."""
    names = {k.lower(): k for k in islice(known, NEAREST_MAX)}
    close = difflib.get_close_matches(name.lower(), names, n=1, cutoff=0.6)
    return f"did you mean '{names[close[0]]}'?" if close else ""


def list_some(names: Iterable[str], limit: int = 8) -> str:
    """`known: a, b, c`, cut where a list would no longer help."""
    listed = list(names)
    more = ", ..." if len(listed) > limit else ""
    return ", ".join(listed[:limit]) + more
