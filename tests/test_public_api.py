"""The public API is frozen: a name comes or goes with an entry in CHANGELOG.md and here.

The rule is in CONTRIBUTING.md, "The public API".
"""

import ast
import doctest
import importlib
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import edgewise

FROZEN = [
    "Aggregate", "App", "AppError", "BadEvent", "EdgewiseError", "Event", "EventKind", "Flow",
    "Guarantee", "LogError", "Merge", "Option", "Procedure", "ProtocolError", "Rows",
    "Schema", "SetupError", "Sink", "SinkSpec", "Source", "SourceSpec", "__version__",
    "aggregate", "aio", "answers", "avg", "call", "col", "compile_app", "compile_query",
    "connect", "count", "distinct_count", "eep", "every", "format_app", "function", "lit",
    "max_", "merge_from_aggregate", "min_", "pattern", "publisher", "replay", "sequence",
    "std_dev", "stream",
    "sum_",
]  # fmt: skip

SIGNATURES = {
    "App": "(text: 'str | Plan', *, functions: 'Iterable[object]' = (), "
    "variables: 'Mapping[str, str]' = {}, start: 'int | None' = None) -> 'None'",
    "App.send": "(self, stream: 'str', events: 'Any', *, ts: 'int | None' = None) -> 'Rows'",
    "App.run": "(self, events: 'Iterable[Any]', *, stream: 'str' = '', time: 'str' = '') "
    "-> 'Rows'",
    "App.advance": "(self, ts: 'int') -> 'Rows'",
    "App.query": "(self, text: 'str') -> 'list[tuple[Any, ...]]'",
    "Flow.run": "(self, events: 'Iterable[Any]', *, stream: 'str' = '', time: 'str' = '', "
    "functions: 'Iterable[object]' = ()) -> 'Rows'",
    "Rows.to_pandas": "(self, stream: 'str' = '') -> 'Any'",
    "Rows.to_arrow": "(self, stream: 'str' = '') -> 'Any'",
    "function": "(name: 'str', *takes: 'str', returns: 'str', spark: 'str' = '', "
    "takes_null: 'bool' = False, clocked: 'bool' = False, deterministic: 'bool' = False) "
    "-> 'Callable[[Callable[..., Any]], Function]'",
    "aggregate": "(name: 'str', *takes: 'str', returns: 'str', "
    "samples: 'tuple[Any, ...]' = ()) -> 'Callable[[A], A]'",
    "connect": "(url: 'str | tuple[str, ...]', **options: 'Any') -> 'SyncClient'",
}
HEAVY = ("pyspark", "pyarrow", "numpy", "pandas", "msgspec", "uvicorn", "asyncio")


def test_the_names_are_those_that_were_promised():
    assert sorted(edgewise.__all__) == sorted(FROZEN)
    assert sorted(edgewise._MODULES) == sorted(set(FROZEN) - {"__version__"})
    assert dir(edgewise) == sorted(FROZEN)


@pytest.mark.parametrize("name", sorted(set(FROZEN) - {"__version__"}))
def test_every_name_is_there_and_says_what_it_is(name):
    found = getattr(edgewise, name)
    where = edgewise._MODULES[name]
    assert getattr(found, "__module__", f"edgewise.{where}").startswith("edgewise")
    if inspect.isclass(found) or inspect.isfunction(found) or inspect.ismodule(found):
        assert inspect.getdoc(found), f"edgewise.{name} has no docstring"


@pytest.mark.parametrize("name", SIGNATURES)
def test_signatures_are_those_that_were_promised(name):
    found = edgewise
    for part in name.split("."):
        found = getattr(found, part)
    assert str(inspect.signature(found)) == SIGNATURES[name]


def test_types_for_editors_are_the_names_that_load():
    """The imports under TYPE_CHECKING and the table say the same."""
    tree = ast.parse(Path(edgewise.__file__).read_text())
    typed = {
        alias.name: node.module.removeprefix("edgewise").removeprefix(".")
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module.startswith("edgewise")
        for alias in node.names
    }
    assert typed == edgewise._MODULES
    assert (Path(edgewise.__file__).parent / "py.typed").exists()


def test_modules_are_modules_and_all_else_is_what_it_is_called():
    kinds = {name for name in edgewise._MODULES if inspect.ismodule(getattr(edgewise, name))}
    assert kinds == {"aio", "eep"}
    app = edgewise.compile_app("define stream S (v int); from S select v insert into O;").app
    [row] = edgewise.replay(app, [edgewise.Event("S", 1, (3,))])
    assert row.data == (3,)


def test_a_name_that_is_not_there_is_no_attribute():
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = edgewise.nothing


def test_importing_it_loads_nothing_heavy():
    code = "import sys, edgewise; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    ).stdout.split()
    assert not set(HEAVY) & set(loaded)


def test_no_public_name_brings_spark_along():
    names = ", ".join(sorted(set(FROZEN) - {"__version__"}))
    code = f"import sys; from edgewise import {names}; print('pyspark' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert run.stdout == "False\n"


MODULES = sorted({edgewise._MODULES[name] for name in edgewise._MODULES} | {"", "eep.window"})


@pytest.mark.parametrize("module", MODULES)
def test_the_examples_of_docstrings_hold(module):
    found = importlib.import_module(f"edgewise.{module}".removesuffix("."))
    public = {name: getattr(edgewise, name) for name in edgewise._MODULES}
    globs = {**public, **vars(found), "edgewise": edgewise}
    failed, _ = doctest.testmod(found, globs=globs)
    assert not failed
