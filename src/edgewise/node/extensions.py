"""Functions, procedures, merges and answers of the user's own, found by name.

A name is `package.module`, `package.module:attribute` or `file.py[:attribute]`. Without an
attribute every `Function`, `Procedure`, `Merge` and `Answer` that the module defines is taken.
Installed packages bring theirs along with an entry point in the group `edgewise.functions`.
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

from edgewise.edge.answers import Answer
from edgewise.edge.merge import Merge
from edgewise.errors import SetupError
from edgewise.plan.functions import FUNCTIONS, Function, FunctionTable
from edgewise.plan.procedures import Procedure

GROUP = "edgewise.functions"


@dataclass(frozen=True, slots=True)
class Extensions:
    functions: FunctionTable
    procedures: tuple[Procedure, ...]
    merges: tuple[Merge, ...] = ()
    answers: tuple[Answer, ...] = ()


Thing = Function | Procedure | Merge | Answer


def installed() -> tuple[str, ...]:
    """The names that installed packages bring along."""
    from importlib.metadata import entry_points  # costs a fifth of the cold start of `check`

    return tuple(entry.value for entry in entry_points(group=GROUP))


def find(names: Iterable[str] = ()) -> Extensions:
    """What these names add; SetupError where one gives nothing."""
    rows: list[Function] = []
    procedures: list[Procedure] = []
    merges: list[Merge] = []
    answers: list[Answer] = []
    for name in names:
        for thing in _things(name):
            if isinstance(thing, Function):
                rows.append(thing)
            elif isinstance(thing, Merge):
                merges.append(thing)
            elif isinstance(thing, Answer):
                answers.append(thing)
            else:
                procedures.append(thing)
    functions = FUNCTIONS.with_(*rows) if rows else FUNCTIONS
    return Extensions(functions, tuple(procedures), tuple(merges), tuple(answers))


def _things(name: str) -> list[Thing]:
    place, _, attribute = name.partition(":")
    module = _module(place, name)
    if attribute and not hasattr(module, attribute):
        raise SetupError(f"--functions {name}: '{place}' has no '{attribute}'")
    chosen = [getattr(module, attribute)] if attribute else _own(module)
    found = list(_flat(chosen))
    if not found:
        raise SetupError(
            f"--functions {name}: no function, procedure, merge or answer there; make one "
            "with edgewise.plan.functions.scalar(...), a class of "
            "edgewise.plan.procedures.Procedure, edgewise.edge.merge.Merge(...) or "
            "@edgewise.edge.answers.answers(...)"
        )
    for thing in found:
        if isinstance(thing, Function) and thing.aggregate:
            raise SetupError(
                f"--functions {name}: '{thing.name}' is an aggregate, and those are built in; "
                "a procedure with state can sum up too"
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
        if isinstance(thing, Thing):
            yield thing
        elif isinstance(thing, type) and issubclass(thing, Procedure) and thing.name:
            yield thing()
        elif isinstance(thing, list | tuple):
            yield from _flat(thing)


def _module(place: str, name: str) -> ModuleType:
    try:
        return _from_file(Path(place)) if place.endswith(".py") else _from_path(place)
    except Exception as error:  # whatever the user's own code raises is theirs to read
        raise SetupError(
            f"--functions {name}: cannot load '{place}': {type(error).__name__}: {error}"
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
