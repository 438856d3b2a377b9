"""The user's own functions on their way to the workers.

A function travels by the name of its module, which a worker must then be able to import. Code that
is installed it finds; a file beside the app it does not, so that travels by value.
"""

from __future__ import annotations

import sys
import sysconfig
from pathlib import Path
from types import ModuleType

from pyspark import cloudpickle

import edgewise
from edgewise.plan.nodes import App, StreamCall, handlers_of
from edgewise.plan.rules.rewriting import calls_of


def ship(app: App) -> None:
    """From now on what the app brings along travels by value."""
    for module in own_modules(app):
        cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]


def own_modules(app: App) -> list[ModuleType]:
    """The modules of functions and procedures that are neither installed nor ours."""
    code: list[object] = [call.body for call in calls_of(app) if call.body is not None]
    handlers = [h for query in app.queries for h in handlers_of(query.input)]
    code += [type(h.procedure) for h in handlers if isinstance(h, StreamCall) and h.procedure]
    names = dict.fromkeys(getattr(thing, "__module__", "") for thing in code)
    found = [sys.modules[name] for name in names if name in sys.modules]
    return [module for module in found if not _installed(module)]


def _installed(module: ModuleType) -> bool:
    file = getattr(module, "__file__", None)
    if file is None:
        return True
    homes = [sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")]
    homes.append(str(Path(edgewise.__file__).parent))
    return any(Path(file).is_relative_to(home) for home in homes)
