"""Compile the text of an app, or of one on-demand query, to a plan.

The entry point of the room: parse, lower, then raise all errors that were found together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from edgewise.errors import Problem
from edgewise.lang.lower.advice import advise
from edgewise.lang.lower.app import lower_app
from edgewise.lang.lower.ondemand import lower_on_demand
from edgewise.lang.parse.app import parse_app, parse_on_demand
from edgewise.lang.report import Report
from edgewise.lang.source import SourceText, substitute
from edgewise.plan.declare import collect_functions
from edgewise.plan.functions import FUNCTIONS, FunctionTable
from edgewise.plan.nodes import App, OnDemandQuery
from edgewise.plan.procedures import Procedure
from edgewise.plan.streamcalls import with_procedures

# The table of what may be called, or what is to be added to that of the language.
Functions: TypeAlias = FunctionTable | Iterable[object]
NO_VARIABLES: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class Compiled:
    """`warnings`: the app is legal, but something in it will hurt."""

    app: App
    warnings: tuple[Problem, ...] = ()


def compile_app(
    text: str,
    file: str = "<app>",
    variables: Mapping[str, str] = NO_VARIABLES,
    functions: Functions = FUNCTIONS,
    procedures: Iterable[Procedure] = (),
) -> Compiled:
    """The plan of an app and warnings about it; AppError with every problem where it has some.

    `variables` are the values of `${NAME}`; `functions` are functions, aggregates and procedures
    of one's own, or a whole table of what may be called; `procedures` more stream functions.

    >>> text = "define stream S (v int); from S[v > 1] select v insert into Large;"
    >>> [stream.name for stream in edgewise.compile_app(text).app.outputs]
    ['Large']
    """
    functions, own = _list_functions(functions)
    text, missing = substitute(text, variables)
    report = Report(SourceText(text, file))
    for name, at in missing:
        report.error(at, f"no value for ${{{name}}}", "set it in the environment")
    report.raise_errors()
    tree = parse_app(report)
    report.torn = report.failed
    table = functions.within(variables)
    app = lower_app(report, tree, table, with_procedures((*own, *procedures)))
    report.raise_errors()
    advise(report, app)
    return Compiled(app, report.warnings())


def _list_functions(functions: Functions) -> tuple[FunctionTable, tuple[Procedure, ...]]:
    if isinstance(functions, FunctionTable):
        return functions, ()
    return collect_functions(functions)


def compile_query(
    text: str, app: App, file: str = "<query>", functions: Functions = FUNCTIONS
) -> OnDemandQuery:
    """One on-demand query against what `app` holds; AppError where it has problems."""
    functions, _ = _list_functions(functions)
    report = Report(SourceText(text, file))
    tree = parse_on_demand(report)
    report.raise_errors()
    assert tree is not None
    with report.attempt():
        query = lower_on_demand(report, tree, app, functions)
        report.raise_errors()
        return query
    report.raise_errors()
    raise AssertionError("refused without a problem")
