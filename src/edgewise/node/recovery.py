"""How each query survives: what it may promise, and whether its sinks promise more.

The plan knows how a query answers when it is fed again, `ha` knows what each kind of recovery
needs; here they meet.
"""

from __future__ import annotations

from edgewise.errors import Problem
from edgewise.ha.recovery import STATEMENTS, Recovery, why_not
from edgewise.plan.nodes import App, InsertInto, Query
from edgewise.plan.rules.repeat import Repeats, repeats

DEFAULT = Recovery.GAP


def notes(app: App) -> dict[str, tuple[str, ...]]:
    """For `explain`: by name of query, its class and what its sinks declare."""
    found = repeats(app)
    return {q.name: _notes(app, q, found[q.name]) for q in app.queries}


def problems(app: App) -> tuple[Problem, ...]:
    """For `check`: sinks that declare what their queries cannot keep."""
    found = repeats(app)
    return tuple(
        Problem(query.span, f"{reason} ({found[query.name].why})")
        for query in app.queries
        for kind in declared(app, query)
        if (reason := why_not(kind, found[query.name].level))
    )


def declared(app: App, query: Query) -> tuple[Recovery, ...]:
    """What the sinks of the query's stream declare; words that are no kind are not for here."""
    if not isinstance(query.output, InsertInto):
        return ()
    target = query.output.target
    sinks = [a for s in app.streams if s.name == target for a in s.annotated("sink")]
    words = [sink.get("recovery", DEFAULT.value) for sink in sinks]
    known = {kind.value: kind for kind in Recovery}
    return tuple(known[word] for word in words if word in known)


def _notes(app: App, query: Query, found: Repeats) -> tuple[str, ...]:
    why = f": {found.why}" if found.why else ""
    lines = [f"fed again it is {found.level.name.lower()}{why}"]
    lines += [f"recovery {k.value}: {STATEMENTS[k].rows}" for k in declared(app, query)]
    return tuple(lines)
