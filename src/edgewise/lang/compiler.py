"""Text to plan, in one call."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from edgewise.errors import Problem
from edgewise.lang.lower.advice import advise
from edgewise.lang.lower.app import lower_app
from edgewise.lang.lower.ondemand import lower_on_demand
from edgewise.lang.parse.app import parse_app, parse_on_demand
from edgewise.lang.report import Report
from edgewise.lang.source import Source, substitute
from edgewise.plan.functions import FUNCTIONS, FunctionTable
from edgewise.plan.nodes import App, OnDemandQuery
from edgewise.plan.procedures import Procedure
from edgewise.plan.streamcalls import with_procedures

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
    functions: FunctionTable = FUNCTIONS,
    procedures: Iterable[Procedure] = (),
) -> Compiled:
    """The plan of an app; AppError with every problem found where it has some.

    `variables` are the values of `${NAME}`; `functions` is the table of what may be called,
    `procedures` are the user's own stream functions.
    """
    text, missing = substitute(text, variables)
    report = Report(Source(text, file))
    for name, at in missing:
        report.error(at, f"no value for ${{{name}}}", "set it in the environment")
    report.raise_errors()
    tree = parse_app(report)
    report.torn = report.failed
    app = lower_app(report, tree, functions, with_procedures(procedures))
    report.raise_errors()
    advise(report, app)
    return Compiled(app, report.warnings())


def compile_query(
    text: str, app: App, file: str = "<query>", functions: FunctionTable = FUNCTIONS
) -> OnDemandQuery:
    """One on-demand query against what `app` holds; AppError where it has problems."""
    report = Report(Source(text, file))
    tree = parse_on_demand(report)
    report.raise_errors()
    assert tree is not None
    with report.attempt():
        query = lower_on_demand(report, tree, app, functions)
        report.raise_errors()
        return query
    report.raise_errors()
    raise AssertionError("refused without a problem")
