"""Split an app into fragments for one process.

On Spark a key spreads the work, and queries that read one stream together share its shuffle. In
one process neither is true:

- Queries that have only an input in common run apart. Each then has a kernel that is written for
  it alone, and the state of one does not ride along with the other.
- A time window has one queue and one timer for all keys, not one for each: a key that comes once
  in a while would cost a timer per event.

The rows are the same. The price: an input is cut into runs once per fragment. Used by `engine`.
"""

from __future__ import annotations

from dataclasses import replace

from edgewise.kernel.codegen.fragment_builder import FragmentBuilder
from edgewise.plan.fragments import Fragment
from edgewise.plan.nodes import App, EventType, Query, StreamInput
from edgewise.plan.rules.keys import split_into_fragments


def split_for_one_process(app: App) -> tuple[Fragment, ...]:
    """Fragments in order of their first query."""
    together = split_into_fragments(app)
    apart = split_into_fragments(app, shared=_find_shared_inputs(app, together))
    return tuple(_drop_key(app, fragment) for fragment in apart)


def _find_shared_inputs(app: App, fragments: tuple[Fragment, ...]) -> frozenset[str]:
    """Inputs whose events cannot fail: one that fails in a query is not seen by those after it."""
    if app.stores:  # two tables may be in one database, which one fragment commits
        return frozenset()
    found: set[str] = set()
    for fragment in fragments:
        builder = FragmentBuilder(app, fragment, frozenset(), as_sent=False)
        if not any(builder.guarded(stream) for stream in builder.read()):
            found.update(fragment.inputs)
    return frozenset(found)


def _drop_key(app: App, fragment: Fragment) -> Fragment:
    queries = [query for query in app.queries if query.name in fragment.queries]
    if fragment.keyed and len(queries) == 1 and _is_time_window(queries[0]):
        return replace(fragment, keys=(), why="one queue for all keys, in one process", stores=())
    return fragment


def _is_time_window(query: Query) -> bool:
    """Of which nobody sees an event leave."""
    source = query.input
    return (
        isinstance(source, StreamInput)
        and source.window is not None
        and source.window.name.lower() == "time"
        and query.output.events is EventType.CURRENT
        and not query.partition
        and query.rate is None
    )
