"""Find the user's own functions, aggregates, procedures, merges and answers by name.

A name is `package.module`, `package.module:attribute` or `file.py[:attribute]`. Without an
attribute every `Function`, declared aggregate, `Procedure`, `Merge` and `Answer` that the module
defines is taken. Installed packages bring theirs along with an entry point in the group
`edgewise.functions`. An aggregate is held to its laws here, before an app uses it.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType

from edgewise.edge.server.answers import RequestHandler
from edgewise.edge.topics.merges import Merge
from edgewise.errors import SetupError
from edgewise.plan.declare import row_of
from edgewise.plan.functions import FUNCTIONS, Function, FunctionTable
from edgewise.plan.procedures import Procedure

GROUP = "edgewise.functions"


@dataclass(frozen=True, slots=True)
class Extensions:
    functions: FunctionTable
    procedures: tuple[Procedure, ...]
    merges: tuple[Merge, ...] = ()
    answers: tuple[RequestHandler, ...] = ()


Thing = Function | Procedure | Merge | RequestHandler


def installed() -> tuple[str, ...]:
    """The names that installed packages bring along."""
    from importlib.metadata import entry_points  # costs a fifth of the cold start of `check`

    return tuple(entry.value for entry in entry_points(group=GROUP))


def find(names: Iterable[str] = ()) -> Extensions:
    """What these names add; SetupError where one gives nothing."""
    return collect(thing for name in names for thing in _things(name))


def collect(things: Iterable[object]) -> Extensions:
    """What these objects add to the language and to the edge."""
    rows: list[Function] = []
    procedures: list[Procedure] = []
    merges: list[Merge] = []
    answers: list[RequestHandler] = []
    for thing in _flat(things):
        if isinstance(thing, Function):
            rows.append(thing)
            if thing.aggregate:
                merges += _checked_merge(thing)
        elif isinstance(thing, Merge):
            merges.append(thing)
        elif isinstance(thing, RequestHandler):
            answers.append(thing)
        else:
            procedures.append(thing)
    functions = FUNCTIONS.with_(*rows) if rows else FUNCTIONS
    return Extensions(functions, tuple(procedures), tuple(merges), tuple(answers))


def _checked_merge(row: Function) -> tuple[Merge, ...]:
    """The merge that an aggregate is too; SetupError where it breaks a law."""
    if row.body is None or row.name in FUNCTIONS:
        raise SetupError(
            f"'{row.name}' is an aggregate of the language: declare yours with "
            "@edgewise.aggregate(...) under another name"
        )
    from edgewise.eep import laws  # brings numpy along
    from edgewise.node.app.declared_merges import merge_from_declaration

    try:
        laws.keeps_the_laws(row.body, row.samples)
    except Exception as error:  # a broken law, or whatever the user's own code raises
        raise SetupError(
            f"aggregate '{row.name}' breaks a law of aggregates with the samples {row.samples}: "
            f"{type(error).__name__}: {error}"
        ) from error
    merge = merge_from_declaration(row)
    return () if merge is None else (merge,)


def _things(name: str) -> list[Thing]:
    location, _, attribute = name.partition(":")
    module = _module(location, name)
    if attribute and not hasattr(module, attribute):
        raise SetupError(f"--functions {name}: '{location}' has no '{attribute}'")
    chosen = [getattr(module, attribute)] if attribute else _own(module)
    found = list(_flat(chosen))
    if not found:
        raise SetupError(
            f"--functions {name}: no function, aggregate, procedure, merge or answer there; make "
            "one with @edgewise.function(...), @edgewise.aggregate(...), a class of "
            "edgewise.Procedure, edgewise.Merge(...) or @edgewise.answers(...)"
        )
    return found


def _own(module: ModuleType) -> list[object]:
    """What a module defines, not what it imports."""
    return [
        thing
        for thing in vars(module).values()
        if not isinstance(thing, type) or thing.__module__ == module.__name__
    ]


def _flat(things: Iterable[object]) -> Iterator[Thing]:
    for thing in things:
        row = row_of(thing)
        if row is not None:
            yield row
        elif isinstance(thing, Thing):
            yield thing
        elif isinstance(thing, type) and issubclass(thing, Procedure) and thing.name:
            yield thing()
        elif isinstance(thing, list | tuple):
            yield from _flat(thing)


def _module(location: str, name: str) -> ModuleType:
    try:
        return _from_file(Path(location)) if location.endswith(".py") else _from_path(location)
    except Exception as error:  # whatever the user's own code raises is theirs to read
        raise SetupError(
            f"--functions {name}: cannot load '{location}': {type(error).__name__}: {error}"
        ) from error


def _from_path(name: str) -> ModuleType:
    here = str(Path.cwd())
    if here not in sys.path:  # an installed command does not look where it is called
        sys.path.append(here)
    return importlib.import_module(name)


class _AsItIs(SourceFileLoader):
    """By what the file says now. Compiled code that is kept beside it is taken for that of a file
    of the same second and size.
    """

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)


def _from_file(path: Path) -> ModuleType:
    name = path.stem
    loader = _AsItIs(name, str(path))
    spec = importlib.util.spec_from_file_location(name, path, loader=loader)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
