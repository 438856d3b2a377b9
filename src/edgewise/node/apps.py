"""An app file as a compiled plan, with the ends its annotations declare."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from edgewise.edge.answers import Answer
from edgewise.edge.merge import Merge
from edgewise.errors import AppError, Problem, SetupError, Span
from edgewise.lang import compile_app
from edgewise.lang.compiler import Compiled
from edgewise.node import extensions
from edgewise.node.defaults import default_problems
from edgewise.node.end_problems import end_problems, place_of
from edgewise.node.recovery import problems
from edgewise.plan.nodes import App

NAME_BYTES_MAX = 200  # of a stream or an app; file systems stop at 255


@dataclass(frozen=True, slots=True)
class LoadedApp:
    app: App
    text: str
    file: str
    warnings: tuple[Problem, ...]
    merges: tuple[Merge, ...] = ()  # the user's own
    answers: tuple[Answer, ...] = ()


def load(path: Path, functions: Iterable[str] = ()) -> LoadedApp:
    """Reads and compiles; AppError for the author, SetupError when there is no such file.

    `functions` name what the user adds to the language (`extensions`).
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise SetupError(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise SetupError(f"{path} is not UTF-8 text (byte {error.start})") from None
    compiled, added = _compiled(text, path, tuple(functions))
    app = compiled.app
    ends = end_problems(app, text, added.merges)
    names = _name_problems(app, text)
    if broken := (*names, *problems(app), *ends, *default_problems(app, text)):
        raise AppError(broken, text, str(path))
    return LoadedApp(app, text, str(path), compiled.warnings, added.merges, added.answers)


def _name_problems(app: App, text: str) -> tuple[Problem, ...]:
    """Of the app and of streams that have a log."""
    written = {q.output.target: q.span for q in app.queries}
    named = {app.name: Span(1, 1)} | {
        s.name: written.get(s.name) or place_of(text, s.name, "define", 0, "")
        for s in (*app.inputs, *app.outputs)
    }
    return tuple(Problem(at, why) for name, at in named.items() if (why := _unfit(name)))


def _unfit(name: str) -> str:
    """Why no directory can have this name (`layout`); '' where one can."""
    if name in {".", ".."} or any(sign in name for sign in "/\\\0"):
        return f"'{name}' names a directory: it cannot be '.' or '..', nor have a slash in it"
    if name.startswith("$"):
        return f"'{name}': names that begin with $ are the node's own"
    if (size := len(name.encode())) > NAME_BYTES_MAX:
        return f"a name has at most {NAME_BYTES_MAX} bytes, '{name[:20]}...' has {size}"
    return ""


def _compiled(
    text: str, path: Path, functions: tuple[str, ...]
) -> tuple[Compiled, extensions.Extensions]:
    """Installed packages are only asked where something is missing: most apps need none."""
    added = extensions.find(functions)
    try:
        return _compile(text, path, added), added
    except AppError:
        installed = extensions.installed()
        if not installed:
            raise
    added = extensions.find((*installed, *functions))
    return _compile(text, path, added), added


def _compile(text: str, path: Path, added: extensions.Extensions) -> Compiled:
    return compile_app(text, str(path), dict(os.environ), added.functions, added.procedures)
