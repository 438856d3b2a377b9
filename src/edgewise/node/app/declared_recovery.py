"""Compare the recovery that sinks declare with what their queries can guarantee.

The plan knows how a query behaves when it reads its events again, `ha` knows what each kind of
recovery needs; the node brings them together. Used by `check` and `explain`, and by
`processes.engine_start`.
"""

from __future__ import annotations

from edgewise.errors import Problem
from edgewise.ha.recovery import STATEMENTS, Recovery, why_not
from edgewise.plan.nodes import App, InsertInto, Query
from edgewise.plan.rules.repeatability import Repeatability, classify_queries

DEFAULT = Recovery.GAP


def describe_recovery(app: App) -> dict[str, tuple[str, ...]]:
    """For `explain`, by query: how it recovers, and what its sinks declare."""
    found, sinks = classify_queries(app), read_recovery(app)
    return {q.name: _describe(_kinds(sinks, q), found[q.name]) for q in app.queries}


def find_recovery_errors(app: App) -> tuple[Problem, ...]:
    """For `check`: sinks that declare more than their queries can guarantee."""
    found, sinks = classify_queries(app), read_recovery(app)
    return tuple(
        Problem(query.span, f"{reason} ({found[query.name].why})")
        for query in app.queries
        for kind in _kinds(sinks, query)
        if (reason := why_not(kind, found[query.name].level))
    )


Declared = dict[str, tuple[Recovery, ...]]  # by name of stream


def read_recovery(app: App) -> Declared:
    """The kinds that the sinks of each stream declare; unknown words are left out."""
    known = {kind.value: kind for kind in Recovery}
    found: Declared = {}
    for stream in app.streams:
        words = [sink.get("recovery", DEFAULT.value) for sink in stream.annotated("sink")]
        found[stream.name] = tuple(known[word] for word in words if word in known)
    return found


def _kinds(sinks: Declared, query: Query) -> tuple[Recovery, ...]:
    return sinks.get(query.output.target, ()) if isinstance(query.output, InsertInto) else ()


def _describe(kinds: tuple[Recovery, ...], found: Repeatability) -> tuple[str, ...]:
    why = f": {found.why}" if found.why else ""
    lines = [f"on replay it is {found.level.name.lower()}{why}"]
    lines += [f"recovery {k.value}: {STATEMENTS[k].rows}" for k in kinds]
    return tuple(lines)
