"""Split an app into fragments and infer the key of each.

Users declare no keys: they are found here, so that state can be spread over tasks.

Queries connected through streams make one fragment. Its key is one attribute of each input stream
(or several, where several will do) such that the state of one key never depends on events of
another. Which attributes of the streams in between still carry the key is followed through the
select lists. Each query with state then says whether it can live with that:

    partition     its own key is the key, or its inner stream carries it
    window        none, time and delay: an event leaves at its own time, whatever else is inside;
                  what leaves all others depends on events of other keys
    aggregate     groups by the key
    pattern       `every` on its first element alone, equalities between all its elements
    sequence      never: any event between two others breaks it
    join          an equality between its sides, both with windows as above
    tables        never: they belong to all keys

`order by`, `limit`, `offset` and rate limits look at rows of all keys together: not legal either.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice, product

from edgewise.plan.exprs import Agg, Expr, Field, InTable, walk
from edgewise.plan.fragments import Fragment
from edgewise.plan.nodes import (
    App,
    ChainState,
    EveryState,
    Filter,
    Handler,
    JoinInput,
    Partition,
    Query,
    StateInput,
    StateKind,
    Stream,
    StreamCall,
    StreamInput,
    StreamState,
    handlers_of,
    slots_of,
    streams_of,
    windows_of,
)
from edgewise.plan.rules.correlation import KEY_TYPES, correlate

KEYABLE_WINDOWS = ("", "time", "delay")
CHOICES_MAX = 4096  # combinations of attributes tried for one fragment
INNER_KEY = "@key"  # what an inner stream carries without selecting it

KeyAttributes = dict[str, frozenset[str]]  # stream -> its attributes that are the key, unchanged


def split_into_fragments(
    app: App, boundaries: Collection[str] = (), shared: Collection[str] = ()
) -> tuple[Fragment, ...]:
    """The fragments of an app, in order of their first query.

    Each stream in `boundaries` is an input of the fragment that reads it (see `chain`). Queries
    that have nothing in common but an input in `shared` are fragments of their own.
    """
    known = [*app.inputs, *(s for s in app.streams if s.name in boundaries)]
    context = _SplitContext(
        {stream.name: stream for stream in known},
        frozenset(s.name for s in app.stores) - {t.name for t in app.triggers},
        {p.name: p for p in app.partitions},
        {a.name: a.input.stream for a in app.aggregations},
        ordered=app.lateness_ms is not None,
    )
    return tuple(
        _build_fragment(context, queries, stores)
        for queries, stores in _group_connected(app, boundaries, shared)
    )


@dataclass(frozen=True, slots=True)
class _SplitContext:
    """What is context a fragment: inputs with their places, names of stores, partitions, and the
    streams that aggregations read.
    """

    inputs: Mapping[str, Stream]
    stores: frozenset[str]
    partitions: Mapping[str, Partition]
    aggregated: Mapping[str, str]
    ordered: bool


def _group_connected(
    app: App, boundaries: Collection[str], shared: Collection[str]
) -> list[tuple[list[Query], list[str]]]:
    """Queries and stores that share a stream or a store, directly or through others."""
    leader: dict[str, str] = {}

    def find(name: str) -> str:
        while leader.setdefault(name, name) != name:
            leader[name] = leader[leader[name]]
            name = leader[name]
        return name

    for names in _connected_names(app, boundaries):
        first, *others = [name for name in names if name not in shared]
        for other in others:
            leader[find(other)] = find(first)
    groups: dict[str, tuple[list[Query], list[str]]] = {}
    for query in app.queries:
        names = [name for name in _names_used(query, boundaries) if name not in shared]
        groups.setdefault(find(names[0]), ([], []))[0].append(query)
    for store in app.stores:
        groups.setdefault(find(store.name), ([], []))[1].append(store.name)
    return list(groups.values())


def _connected_names(app: App, boundaries: Collection[str]) -> Iterator[list[str]]:
    """Names that belong together."""
    yield from (_names_used(q, boundaries) for q in app.queries)
    yield from ([a.name, a.input.stream] for a in app.aggregations)


def _names_used(query: Query, boundaries: Collection[str] = ()) -> list[str]:
    """What a query reads and writes; inner streams belong to their partition, and a stream that
    is a boundary counts as two.
    """
    tables = [
        node.table
        for expr in _list_exprs(query)
        for node in walk(expr)
        if isinstance(node, InTable)
    ]
    names = [f"{n} (read)" if n in boundaries else n for n in streams_of(query.input)] + tables
    names += [_strip_fault_prefix(name) for name in names if name.startswith("!")]
    if query.output.target:
        names.append(query.output.target)
    return [_qualify_inner(query, name) for name in names]


def _strip_fault_prefix(name: str) -> str:
    """The stream whose faults `!S` are; any other name as it is."""
    return name.removeprefix("!")


def _qualify_inner(query: Query, name: str) -> str:
    return f"{query.partition}{name}" if name.startswith("#") else name


def _build_fragment(context: _SplitContext, queries: list[Query], stores: list[str]) -> Fragment:
    """A fragment of these queries and stores, with the key they allow or why they allow none."""
    names = tuple(q.name for q in queries)
    inputs = _find_inputs(context, queries, stores)
    unkeyed = Fragment(
        (names or tuple(stores))[0], names, tuple(s.name for s in inputs), stores=()
    )
    blocker = next((reason for q in queries if (reason := _find_blocker(context, q))), "")
    if not (blocker or stores or context.ordered or any(is_stateful(q) for q in queries)):
        return replace(unkeyed, stateless=True)
    if stores:
        blocker = blocker or f"'{stores[0]}' belongs to all keys"
    if not inputs:
        blocker = blocker or "no input"
    if blocker:
        return replace(unkeyed, why=blocker, stores=tuple(stores))
    legal, reason = _find_legal_keys(context, queries, inputs)
    if not legal:
        return replace(unkeyed, why=reason)
    return replace(unkeyed, keys=_combine_keys(unkeyed.inputs, legal))


def _find_inputs(context: _SplitContext, queries: list[Query], stores: list[str]) -> list[Stream]:
    """The inputs of the app that a fragment reads, in the order of their definition."""
    read = {_strip_fault_prefix(name) for q in queries for name in streams_of(q.input)}
    read |= {context.aggregated[store] for store in stores if store in context.aggregated}
    return [stream for name, stream in context.inputs.items() if name in read]


def _find_legal_keys(
    context: _SplitContext, queries: list[Query], inputs: list[Stream]
) -> tuple[list[tuple[str, ...]], str]:
    """The candidates no query objects to, one attribute for each input; else why there is none."""
    legal: list[tuple[str, ...]] = []
    first_reason = ""
    for candidate in islice(_list_key_candidates(inputs), CHOICES_MAX):
        chosen = dict(zip((s.name for s in inputs), candidate, strict=True))
        reason = _explain_refusal(context, queries, chosen)
        if reason:
            first_reason = first_reason or reason
        else:
            legal.append(candidate)
    if len(queries) > 1:
        first_reason = "the queries share no grouping attribute"
    return legal, first_reason or "no attribute can be a key"


def _combine_keys(
    streams: Sequence[str], legal: list[tuple[str, ...]]
) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """All legal keys together are a finer one; of one stream each attribute counts once."""
    columns = zip(*legal, strict=True)
    return tuple(
        (stream, tuple(dict.fromkeys(column)) if len(streams) == 1 else tuple(column))
        for stream, column in zip(streams, columns, strict=True)
    )


def _list_key_candidates(inputs: Sequence[Stream]) -> Iterator[tuple[str, ...]]:
    """One attribute of each input; where there are several, only of one type."""
    usable = [[a for a in s.schema.attributes if a.type in KEY_TYPES] for s in inputs]
    for choice in product(*usable):
        if len({a.type for a in choice}) == 1:
            yield tuple(a.name for a in choice)


def _explain_refusal(context: _SplitContext, queries: list[Query], choice: dict[str, str]) -> str:
    """Why this choice of one attribute per input is no key, '' where it is one."""
    carried: KeyAttributes = {stream: frozenset({name}) for stream, name in choice.items()}
    carried |= {f"!{stream}": name for stream, name in carried.items()}
    pending = list(queries)
    written: dict[str, int] = {}
    for query in queries:
        target = _qualify_inner(query, query.output.target)
        written[target] = written.get(target, 0) + 1
    while pending:
        waiting: list[Query] = []
        for query in pending:
            if not all(_qualify_inner(query, s) in carried for s in streams_of(query.input)):
                waiting.append(query)
                continue
            reason = _find_obstacle(context, query, carried)
            if reason:
                return f"{query.name}: {reason}"
            _propagate_key(query, carried, written)
        if len(waiting) == len(pending):
            return "streams feed back into themselves"
        pending = waiting
    return ""


def _propagate_key(query: Query, carried: KeyAttributes, written: dict[str, int]) -> None:
    """The attributes of the target that are the key; known once all its writers are."""
    target = _qualify_inner(query, query.output.target)
    own = {
        slot: carried[_qualify_inner(query, stream)]
        for slot, stream in slots_of(query.input).items()
    }
    passed = {
        item.name
        for item in query.select.items
        if isinstance(item.expr, Field) and item.expr.name in own.get(item.expr.slot, ())
    }
    if target.startswith(f"{query.partition}#"):
        passed.add(INNER_KEY)
    so_far = carried.get(f"?{target}")
    found = frozenset(passed) if so_far is None else so_far & passed
    carried[f"?{target}"] = found
    written[target] -= 1
    if not written[target] and target not in carried:
        carried[target] = found


# What each query asks of the key.


def _find_obstacle(context: _SplitContext, query: Query, carried: KeyAttributes) -> str:
    if query.partition:
        return _find_partition_obstacle(context, query, carried)
    if not is_stateful(query):
        return ""
    if isinstance(query.input, StreamInput):
        grouped = {f.name for f in query.select.group_by}
        if grouped and not grouped & carried[query.input.stream]:
            return "groups by another attribute"
        return ""
    slots = slots_of(query.input)
    for key in correlate(query.input):
        if all(key[slot] in carried[stream] for slot, stream in slots.items()):
            grouped_by = {(f.slot, f.name) for f in query.select.group_by}
            if has_aggregates(query) and not grouped_by & set(key.items()):
                return "aggregates over all keys"
            return ""
    return "no equality ties its inputs together"


def _find_partition_obstacle(context: _SplitContext, query: Query, carried: KeyAttributes) -> str:
    partition = context.partitions[query.partition]
    keys = {key.stream: key for key in partition.keys}
    for stream in streams_of(query.input):
        if stream.startswith("#"):
            if INNER_KEY not in carried[_qualify_inner(query, stream)]:
                return f"'{stream}' is not keyed"
            continue
        key = keys.get(stream)
        if key is None:
            return f"'{stream}' goes to every key of the partition"
        if not isinstance(key.value, Field):
            return f"'{stream}' is partitioned by a computed value"
        if key.value.name not in carried[stream]:
            return f"'{stream}' is partitioned by '{key.value.name}'"
    return ""


def is_stateful(query: Query) -> bool:
    return (
        bool(query.partition)
        or not isinstance(query.input, StreamInput)
        or query.input.window is not None
        or any(_runs_procedure(h) for h in handlers_of(query.input))
        or query.rate is not None
        or has_aggregates(query)
    )


def _runs_procedure(handler: Handler) -> bool:
    return isinstance(handler, StreamCall) and (handler.procedure is not None or handler.operator)


def has_aggregates(query: Query) -> bool:
    exprs = [item.expr for item in query.select.items]
    if query.select.having is not None:
        exprs.append(query.select.having)
    return any(isinstance(node, Agg) for expr in exprs for node in walk(expr))


def _find_blocker(context: _SplitContext, query: Query) -> str:
    """The first reason why no key is legal for a query, '' for none."""
    reason = next(
        (f"'{n}' belongs to all keys" for n in _names_used(query) if n in context.stores), ""
    )
    if not reason and is_stateful(query) and not query.partition:
        reason = _find_cross_key_dependency(query)
    partition = context.partitions.get(query.partition)
    if not reason and partition and partition.state and partition.state.limit is not None:
        reason = "a limit counts the keys of all tasks together"
    return f"{query.name}: {reason}" if reason else ""


def _find_cross_key_dependency(query: Query) -> str:
    select = query.select
    if any(_runs_procedure(h) for h in handlers_of(query.input)):
        return "a procedure sees all events; put it in a partition to key it"
    if query.state is not None and query.state.limit is not None:
        return "a limit counts the matches of all keys together"
    if query.rate:
        return "a rate limit counts all rows together"
    if select.order_by or select.limit is not None or select.offset:
        return "order by and limit look at all groups together"
    if has_aggregates(query) and not select.group_by:
        return "aggregates over all events, no group by"
    for window in windows_of(query.input):
        if window.name not in KEYABLE_WINDOWS:
            return f"what leaves #window.{window.name} depends on all events together"
    return _find_cross_key_match(query.input) if isinstance(query.input, StateInput) else ""


def explain_unkeyed_pattern(query_input: StateInput) -> str:
    """Why a pattern that repeats cannot be keyed; one that matches once needs no key."""
    why = _find_cross_key_match(query_input)
    if why.startswith("without"):
        return ""
    if not why and not correlate(query_input):
        why = "no equality ties its elements together"
    return why


def _find_cross_key_match(query_input: StateInput) -> str:
    """Why matches of one key depend on events of another, '' where they do not."""
    if query_input.kind is StateKind.SEQUENCE:
        return "a sequence is broken by any event in between"
    state = query_input.state
    chain = state.states if isinstance(state, ChainState) else (state,)
    first, rest = chain[0], chain[1:]
    if not isinstance(first, EveryState):
        return "without 'every' there is one match for all keys"
    if not isinstance(first.state, StreamState):
        return "'every' over more than one event waits for a match of any key"
    if any(isinstance(s, EveryState) for s in rest):
        return "'every' in the middle starts from one match of any key"
    return ""


def _list_exprs(query: Query) -> list[Expr]:
    """Every condition and expression of a query that may look into a table."""
    found = [h.condition for h in handlers_of(query.input) if isinstance(h, Filter)]
    found += [item.expr for item in query.select.items]
    if isinstance(query.input, JoinInput) and query.input.on is not None:
        found.append(query.input.on)
    if query.select.having is not None:
        found.append(query.select.having)
    return found
