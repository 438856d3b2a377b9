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
    found, sinks = repeats(app), declared(app)
    return {q.name: _notes(_kinds(sinks, q), found[q.name]) for q in app.queries}


def problems(app: App) -> tuple[Problem, ...]:
    """For `check`: sinks that declare what their queries cannot keep."""
    found, sinks = repeats(app), declared(app)
    return tuple(
        Problem(query.span, f"{reason} ({found[query.name].why})")
        for query in app.queries
        for kind in _kinds(sinks, query)
        if (reason := why_not(kind, found[query.name].level))
    )


Declared = dict[str, tuple[Recovery, ...]]  # by name of stream


def declared(app: App) -> Declared:
    """What the sinks of each stream declare; words that are no kind are not for here."""
    known = {kind.value: kind for kind in Recovery}
    found: Declared = {}
    for stream in app.streams:
        words = [sink.get("recovery", DEFAULT.value) for sink in stream.annotated("sink")]
        found[stream.name] = tuple(known[word] for word in words if word in known)
    return found


def _kinds(sinks: Declared, query: Query) -> tuple[Recovery, ...]:
    return sinks.get(query.output.target, ()) if isinstance(query.output, InsertInto) else ()


def _notes(kinds: tuple[Recovery, ...], found: Repeats) -> tuple[str, ...]:
    why = f": {found.why}" if found.why else ""
    lines = [f"fed again it is {found.level.name.lower()}{why}"]
    lines += [f"recovery {k.value}: {STATEMENTS[k].rows}" for k in kinds]
    return tuple(lines)
