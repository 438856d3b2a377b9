"""Ship users' functions to Spark's workers.

A function is pickled by the name of its module, which a worker must then be able to import. It can
import what is installed; a file beside the app it cannot, so such modules are pickled by value.
Used by `execution`.
"""

from __future__ import annotations

import sys
import sysconfig
from pathlib import Path
from types import ModuleType

from pyspark import cloudpickle

from edgewise.plan.nodes import App, StreamCall, handlers_of
from edgewise.plan.rules.map_expressions import find_aggregates, find_calls


def ship_modules(app: App) -> None:
    """From now on the app's own modules are pickled by value, in this process."""
    for module in find_own_modules(app):
        cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]


def find_own_modules(app: App) -> list[ModuleType]:
    """The modules of functions, aggregates and procedures that are neither installed nor ours."""
    code: list[object] = [call.body for call in find_calls(app) if call.body is not None]
    code += [type(a.body) for a in find_aggregates(app) if a.body is not None]
    handlers = [h for query in app.queries for h in handlers_of(query.input)]
    code += [type(h.procedure) for h in handlers if isinstance(h, StreamCall) and h.procedure]
    names = dict.fromkeys(getattr(thing, "__module__", "") for thing in code)
    found = [sys.modules[name] for name in names if name in sys.modules]
    return [module for module in found if not _is_installed(module)]


def _is_installed(module: ModuleType) -> bool:
    file = getattr(module, "__file__", None)
    if file is None:
        return True
    directories = [sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")]
    directories.append(str(Path(__file__).parent.parent))
    return any(Path(file).is_relative_to(directory) for directory in directories)
