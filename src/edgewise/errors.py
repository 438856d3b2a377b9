"""The error tree. Each branch says whose fault it is.

    EdgewiseError
    ├── AppError            the author's: the text of an app (place, and what was expected)
    ├── BadEvent            the sender's: an event that its stream does not take (field and reason)
    ├── LogError            the disk's
    │   ├── LogLocked       another writer owns this log
    │   ├── LogFull         no room: nothing was appended, nothing acknowledged is lost
    │   ├── LogCorrupt      bytes that fail their checksum, with file and position
    │   └── OutOfRange      offsets that retention removed or that do not exist yet
    ├── LeaseError          the data directory's: its lease cannot be read, or cannot be trusted
    ├── RecoveryError       a declared recovery that what is on disk cannot give
    ├── ProtocolError       the peer's: wire frames that break the protocol (a code decides retry)
    ├── StateError          kernel state of another version, another query, or torn
    └── SetupError          the machine's: something must be installed or configured first
        └── Unreachable     a place that executors of a cluster must reach and do not

`assert` is for our own bugs only. The command line prints these without a traceback and exits 2.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass


class EdgewiseError(Exception):
    """Whatever a person can act on."""


@dataclass(frozen=True, slots=True)
class Span:
    """A place in an app: lines and columns count from 1, `length` in characters."""

    line: int
    column: int
    length: int = 1


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong (or unwise) in an app, with its place and the way out."""

    span: Span
    message: str
    hint: str = ""
    severity: str = "error"


LINE_MAX = 120  # characters of a line that are shown; a longer one is cut around the place
LEAD_MAX = 50  # of them before the place


class AppError(EdgewiseError):
    """An app that cannot run; carries every problem found, not only the first."""

    def __init__(self, problems: tuple[Problem, ...], text: str = "", file: str = "<app>") -> None:
        self.problems = problems
        self.text = text
        self.file = file
        super().__init__(self.render())

    def render(self) -> str:
        """Every problem as `file:line:column: error: message` with the line and a caret."""
        lines = self.text.splitlines()
        return "\n".join(self._render_one(p, lines) for p in self.problems)

    def _render_one(self, problem: Problem, lines: list[str]) -> str:
        span = problem.span
        out = [f"{self.file}:{span.line}:{span.column}: {problem.severity}: {problem.message}"]
        if 0 < span.line <= len(lines):
            out += _shown(lines[span.line - 1], span)
        if problem.hint:
            out.append(f"    {problem.hint}")
        return "\n".join(out)


def _shown(source: str, span: Span) -> list[str]:
    """The line, or the part of it around the place, and a caret under the place."""
    column, before = span.column - 1, ""
    if len(source) > LINE_MAX:
        first = max(0, min(column - LEAD_MAX, len(source) - LINE_MAX))
        before = "..." if first else ""
        after = "..." if first + LINE_MAX < len(source) else ""
        source = f"{before}{source[first : first + LINE_MAX]}{after}"
        column += len(before) - first
    indent = "".join("\t" if c == "\t" else " " for c in source[:column])
    width = max(1, min(span.length, len(source) - column))
    return [f"    {source}", f"    {indent}{'^' * width}"]


class BadEvent(EdgewiseError):
    """An event its stream does not take. `index` is its place in the request."""

    def __init__(self, reason: str, *, index: int = 0, field: str = "") -> None:
        self.reason = reason
        self.index = index
        self.field = field
        where = f"event {index}" + (f", field '{field}'" if field else "")
        super().__init__(f"{where}: {reason}")


class LogError(EdgewiseError):
    """Something about a log that a person must know."""


class LogLocked(LogError):
    """Another writer owns this log."""


class LogFull(LogError):
    """The disk has no room: nothing was appended."""


class LogCorrupt(LogError):
    """Bytes that fail their checksum."""


class OutOfRange(LogError):
    """Offsets that are gone or not there yet."""


class LeaseError(EdgewiseError):
    """The lease of a data directory cannot be read, or cannot be trusted."""


class RecoveryError(EdgewiseError):
    """What is on disk cannot give the recovery that was declared."""


class ProtocolError(EdgewiseError):
    """The peer broke the protocol; `code` is from the table in wire/SPEC.md."""

    def __init__(self, code: int, reason: str) -> None:
        self.code = code
        self.reason = reason
        super().__init__(f"{code}: {reason}")


class StateError(EdgewiseError):
    """Kernel state that does not belong here."""


class SetupError(EdgewiseError):
    """The machine lacks something; the message names the command that mends it."""


class Unreachable(SetupError):
    """Executors of a cluster do not reach what their tasks need: another option is needed."""


# Packages that come with an extra of the installation, by the name they are imported by.
EXTRAS = {
    "pyspark": "spark",
    "py4j": "spark",
    "confluent_kafka": "kafka",
    "paho": "mqtt",
    "aio_pika": "amqp",
    "proton": "amqp1",
    "zmq": "zeromq",
    "sqlalchemy": "sql",
    "psycopg": "sql",
    "pymysql": "sql",
    "quickjs": "javascript",
    "pygls": "lsp",
}


@contextmanager
def name_missing_extra() -> Iterator[None]:
    """Around an import that may need an extra: SetupError names the one to install."""
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in EXTRAS:
            raise
        raise SetupError(_say_extra(package)) from error


def require_package(package: str, instead: str = "") -> None:
    """SetupError that names the extra where a package is not installed; nothing is imported.

    For a command that would find out only after it has started other things.
    """
    from importlib.util import find_spec

    if find_spec(package) is None:
        raise SetupError(_say_extra(package) + (f", or {instead}" if instead else ""))


def _say_extra(package: str) -> str:
    extra = EXTRAS[package]
    return f"the package '{package}' is not installed: pip install 'edgewise[{extra}]'"
