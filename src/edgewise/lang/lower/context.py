"""Hold what is defined and planned so far while an app is lowered."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from edgewise.lang.lower.expressions import Context
from edgewise.lang.lower.scope import Scope, Slot
from edgewise.lang.lower.symbols import Symbols
from edgewise.lang.report import Report
from edgewise.lang.syntax import query as written
from edgewise.plan import nodes
from edgewise.plan.functions import FunctionTable
from edgewise.plan.streamcalls import STREAM_FUNCTIONS, StreamFunction


@dataclass(slots=True)
class PlanInProgress:
    """What grows; shared by the drafts of all partitions."""

    queries: list[nodes.Query] = field(default_factory=list)
    names: dict[str, bool] = field(default_factory=dict)  # whether a query has it already
    again: dict[str, int] = field(default_factory=dict)  # how often a name was wanted again
    anonymous: int = 0


@dataclass(frozen=True, slots=True)
class LoweringContext:
    """`inner` lowers a query in parentheses and gives the name of the stream it feeds."""

    report: Report
    symbols: Symbols
    functions: FunctionTable
    planned: PlanInProgress
    inner: Callable[[LoweringContext, written.Query], written.Name]
    partition: str = ""
    stream_functions: Mapping[str, StreamFunction] = field(
        default_factory=lambda: STREAM_FUNCTIONS
    )

    def inside(self, partition: str) -> LoweringContext:
        symbols = Symbols(self.report, outer=self.symbols)
        return replace(self, symbols=symbols, partition=partition)

    def context(self, slots: tuple[Slot, ...], own: str = "", no_aggregates: str = "") -> Context:
        scope = Scope(self.report, slots, own=own)
        return Context(self.report, scope, self.functions, self.symbols, no_aggregates)
