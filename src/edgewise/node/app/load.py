"""Load an app file: read, compile, and check what its annotations declare.

Used by every command that takes an app, and by the language server.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from edgewise.edge.server.answers import RequestHandler
from edgewise.edge.topics.merges import Merge
from edgewise.errors import AppError, Problem, SetupError, Span
from edgewise.lang import compile_app
from edgewise.lang.compiler import Compiled
from edgewise.node.app import extensions
from edgewise.node.app.attribute_defaults import find_default_errors
from edgewise.node.app.declared_recovery import find_recovery_errors
from edgewise.node.app.source_sink_errors import find_source_sink_errors, locate_option
from edgewise.node.app.store_errors import find_store_errors
from edgewise.plan.nodes import App

NAME_BYTES_MAX = 200  # of a stream or an app; file systems stop at 255


@dataclass(frozen=True, slots=True)
class LoadedApp:
    app: App
    text: str
    file: str
    warnings: tuple[Problem, ...]
    merges: tuple[Merge, ...] = ()  # the user's own
    answers: tuple[RequestHandler, ...] = ()


def load(path: Path, functions: Iterable[str] = ()) -> LoadedApp:
    """AppError where the app has errors, SetupError where the file cannot be read.

    `functions` name the user's extensions (`extensions`).
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise SetupError(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise SetupError(f"{path} is not UTF-8 text (byte {error.start})") from None
    return load_text(text, path, functions)


def load_text(text: str, path: Path, functions: Iterable[str] = ()) -> LoadedApp:
    """As `load`, of a text that need not be in its file yet: an editor has it first."""
    compiled, added = _compile_with_extensions(text, path, tuple(functions))
    app = compiled.app
    found = (
        *find_recovery_errors(app),
        *find_source_sink_errors(app, text, added.merges),
        *find_store_errors(app, text),
    )
    errors = [p for p in found if p.severity == "error"]
    warnings = [p for p in found if p.severity != "error"]
    name_errors = _find_name_errors(app, text)
    if broken := (
        *name_errors,
        *errors,
        *find_default_errors(app, text),
    ):
        raise AppError(broken, text, str(path))
    return LoadedApp(
        app, text, str(path), (*compiled.warnings, *warnings), added.merges, added.answers
    )


def _find_name_errors(app: App, text: str) -> tuple[Problem, ...]:
    """Of the app and of streams that have a log."""
    written = {q.output.target: q.span for q in app.queries}
    named = {app.name: Span(1, 1)} | {
        s.name: written.get(s.name) or locate_option(text, s.name, "define", 0, "")
        for s in (*app.inputs, *app.outputs)
    }
    return tuple(
        Problem(at, why) for name, at in named.items() if (why := _explain_bad_name(name))
    )


def _explain_bad_name(name: str) -> str:
    """Why this name cannot be that of a directory (`data_dir`); '' where it can."""
    if name in {".", ".."} or any(sign in name for sign in "/\\\0"):
        return f"'{name}' names a directory: it cannot be '.' or '..', nor have a slash in it"
    if name.startswith("$"):
        return f"'{name}': names that begin with $ are reserved for the node"
    if (size := len(name.encode())) > NAME_BYTES_MAX:
        return f"a name has at most {NAME_BYTES_MAX} bytes, '{name[:20]}...' has {size}"
    return ""


def _compile_with_extensions(
    text: str, path: Path, functions: tuple[str, ...]
) -> tuple[Compiled, extensions.Extensions]:
    """Load installed extensions only where something is missing: most apps need none."""
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
