"""Split chained queries with different keys into stages, at a stream between them.

A fragment that can have no key as a whole may be two that can. It is cut where nobody can tell:

- one query writes the stream, and one event makes at most one row of it, at once;
- whoever reads it reads nothing else.

The rows of the first stage then carry the places of the events that caused them (clock, offset)
into the second, and what that makes has its place in the one order of the app.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import combinations

from edgewise.plan.fragments import Fragment
from edgewise.plan.nodes import (
    App,
    EventType,
    Filter,
    InsertInto,
    Query,
    StreamInput,
    handlers_of,
    streams_of,
    windows_of,
)
from edgewise.plan.rules.keys import split_into_fragments

SPLITS_MAX = 2  # streams one tries to cut at together; with more stages a batch has more jobs
CANDIDATES_MAX = 8  # streams in between that are tried; a larger app is cut by its author
AT_ONCE_WINDOWS = frozenset({"length", "time", "externalTime", "timeLength"})


def split_into_stages(app: App) -> tuple[Fragment, ...]:
    """The fragments of an app, each after those it reads from."""
    best = split_into_fragments(app)
    if app.lateness_ms is not None:  # events are put in order once, where they enter
        return best
    for boundaries in _list_split_choices(_find_splittable_streams(app, best)):
        found = _order_by_dependency(app, split_into_fragments(app, boundaries))
        if _is_valid_split(app, boundaries, found) and _count_single_task_queries(
            found
        ) < _count_single_task_queries(best):
            best = found
    return best


def _count_single_task_queries(fragments: Collection[Fragment]) -> int:
    """Queries that run on one task."""
    return sum(len(f.queries) for f in fragments if _runs_on_one_task(f))


def _runs_on_one_task(fragment: Fragment) -> bool:
    return not fragment.keyed and not fragment.stateless


def _list_split_choices(candidates: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Few boundaries first: of two that are as good the first is kept."""
    if len(candidates) <= CANDIDATES_MAX:
        for count in range(1, SPLITS_MAX + 1):
            yield from combinations(candidates, count)


def _find_splittable_streams(app: App, fragments: Collection[Fragment]) -> list[str]:
    """Streams between two queries of a chain that runs on one task."""
    chained = {
        n for f in fragments if _runs_on_one_task(f) and len(f.queries) > 1 for n in f.queries
    }
    queries = [q for q in app.queries if q.name in chained]
    writers: dict[str, list[Query]] = {}
    readers: dict[str, list[Query]] = {}
    for query in queries:
        writers.setdefault(query.output.target, []).append(query)
        for stream in streams_of(query.input):
            readers.setdefault(stream, []).append(query)
    kept = {s.name for s in (*app.inputs, *app.stores)} | {
        a.input.stream for a in app.aggregations
    }
    names = {s.name for s in app.streams}
    between = names - kept
    return [
        stream
        for stream, [first, *others] in writers.items()
        if not others
        and stream in readers
        and stream in between
        and f"!{stream}" not in names
        and _emits_at_most_one_row(first)
        and all(set(streams_of(q.input)) == {stream} for q in readers[stream])
    ]


def _emits_at_most_one_row(query: Query) -> bool:
    """An event makes at most one row, and nothing but an event makes one."""
    select, output = query.select, query.output
    return (
        isinstance(query.input, StreamInput)
        and all(isinstance(h, Filter) for h in handlers_of(query.input))
        and all(w.name in AT_ONCE_WINDOWS for w in windows_of(query.input))
        and isinstance(output, InsertInto)
        and output.events is EventType.CURRENT
        and query.rate is None
        and not (select.order_by or select.offset)
        and select.limit is None
    )


def _is_valid_split(
    app: App, boundaries: tuple[str, ...], fragments: Collection[Fragment]
) -> bool:
    """A fragment reads inputs of the app, or one stream that was cut; none is left out."""
    inputs = {s.name for s in app.inputs}
    whole = sum(len(f.queries) for f in fragments) == len(app.queries)
    return whole and all(
        set(f.inputs) <= inputs or (len(f.inputs) == 1 and f.inputs[0] in boundaries)
        for f in fragments
    )


def _order_by_dependency(app: App, fragments: tuple[Fragment, ...]) -> tuple[Fragment, ...]:
    """Each after those it reads from, without those that wait for each other."""
    target = {q.name: q.output.target for q in app.queries}
    known = {s.name for s in app.inputs}
    waiting, done = list(fragments), list[Fragment]()
    while waiting:
        ready = [f for f in waiting if set(f.inputs) <= known]
        if not ready:
            break
        done += ready
        known |= {target[name] for f in ready for name in f.queries}
        waiting = [f for f in waiting if f not in ready]
    return tuple(done)
