"""Keys are found, not demanded: split an app into fragments and give each the key it can have.

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
from dataclasses import dataclass
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

Carried = dict[str, frozenset[str]]  # stream -> its attributes that are the key, unchanged


def split(app: App, cuts: Collection[str] = ()) -> tuple[Fragment, ...]:
    """The fragments of an app, in order of their first query.

    Streams in `cuts` are inputs to those that read them, of a fragment of their own (`chain`).
    """
    known = [*app.inputs, *(s for s in app.streams if s.name in cuts)]
    around = _Around(
        {stream.name: (place, stream) for place, stream in enumerate(known)},
        frozenset(s.name for s in app.stores) - {t.name for t in app.triggers},
        {p.name: p for p in app.partitions},
        {a.name: a.input.stream for a in app.aggregations},
        ordered=app.lateness_ms is not None,
    )
    return tuple(_fragment(around, queries, stores) for queries, stores in _components(app, cuts))


@dataclass(frozen=True, slots=True)
class _Around:
    """What is around a fragment: inputs with their places, names of stores, partitions, and the
    streams that aggregations read.
    """

    inputs: Mapping[str, tuple[int, Stream]]
    stores: frozenset[str]
    partitions: Mapping[str, Partition]
    aggregated: Mapping[str, str]
    ordered: bool


def _components(app: App, cuts: Collection[str]) -> list[tuple[list[Query], list[str]]]:
    """Queries and stores that share a stream or a store, directly or through others."""
    leader: dict[str, str] = {}

    def find(name: str) -> str:
        while leader.setdefault(name, name) != name:
            leader[name] = leader[leader[name]]
            name = leader[name]
        return name

    for first, *others in _ties(app, cuts):
        for other in others:
            leader[find(other)] = find(first)
    groups: dict[str, tuple[list[Query], list[str]]] = {}
    for query in app.queries:
        groups.setdefault(find(_touched(query, cuts)[0]), ([], []))[0].append(query)
    for store in app.stores:
        groups.setdefault(find(store.name), ([], []))[1].append(store.name)
    return list(groups.values())


def _ties(app: App, cuts: Collection[str]) -> Iterator[list[str]]:
    """Names that belong together."""
    yield from (_touched(q, cuts) for q in app.queries)
    yield from ([a.name, a.input.stream] for a in app.aggregations)


def _touched(query: Query, cuts: Collection[str] = ()) -> list[str]:
    """What a query reads and writes; inner streams belong to their partition, and a stream that
    is cut has two ends.
    """
    tables = [
        node.table for expr in _exprs(query) for node in walk(expr) if isinstance(node, InTable)
    ]
    names = [f"{n} (read)" if n in cuts else n for n in streams_of(query.input)] + tables
    names += [_faulty(name) for name in names if name.startswith("!")]
    if query.output.target:
        names.append(query.output.target)
    return [_global(query, name) for name in names]


def _faulty(name: str) -> str:
    """The stream whose faults `!S` are; any other name as it is."""
    return name.removeprefix("!")


def _global(query: Query, name: str) -> str:
    return f"{query.partition}{name}" if name.startswith("#") else name


def _fragment(around: _Around, queries: list[Query], stores: list[str]) -> Fragment:
    names = tuple(q.name for q in queries)
    name, held = (names or tuple(stores))[0], tuple(stores)
    read = {_faulty(name) for q in queries for name in streams_of(q.input)}
    read |= {around.aggregated[store] for store in held if store in around.aggregated}
    inputs = [
        s for _, s in sorted((around.inputs[n] for n in read if n in around.inputs), key=_place)
    ]
    streams = tuple(s.name for s in inputs)
    why = next((reason for q in queries if (reason := _blocked(around, q))), "")
    if not why and not held and not any(stateful(q) for q in queries) and not around.ordered:
        return Fragment(name, names, streams, stateless=True, stores=())
    if held:
        why = why or f"'{held[0]}' belongs to all keys"
    if not inputs:
        why = why or "no input"
    if why:
        return Fragment(name, names, streams, why=why, stores=held)
    legal: list[tuple[str, ...]] = []
    first_reason = ""
    for choice in islice(_choices(inputs), CHOICES_MAX):
        reason = _refusal(around, queries, dict(zip(streams, choice, strict=True)))
        if reason:
            first_reason = first_reason or reason
        else:
            legal.append(choice)
    if not legal:
        reason = "the queries share no grouping attribute" if len(queries) > 1 else first_reason
        why = reason or "no attribute can be a key"
        return Fragment(name, names, streams, why=why, stores=())
    columns = zip(*legal, strict=True)
    keys = tuple(
        (stream, tuple(dict.fromkeys(column)) if len(streams) == 1 else tuple(column))
        for stream, column in zip(streams, columns, strict=True)
    )
    return Fragment(name, names, streams, keys, stores=())


def _place(placed: tuple[int, Stream]) -> int:
    return placed[0]


def _choices(inputs: Sequence[Stream]) -> Iterator[tuple[str, ...]]:
    """One attribute of each input; where there are several, only of one type."""
    usable = [[a for a in s.schema.attributes if a.type in KEY_TYPES] for s in inputs]
    for choice in product(*usable):
        if len({a.type for a in choice}) == 1:
            yield tuple(a.name for a in choice)


def _refusal(around: _Around, queries: list[Query], choice: dict[str, str]) -> str:
    """Why this choice of one attribute per input is no key, '' where it is one."""
    carried: Carried = {stream: frozenset({name}) for stream, name in choice.items()}
    carried |= {f"!{stream}": name for stream, name in carried.items()}
    pending = list(queries)
    written: dict[str, int] = {}
    for query in queries:
        target = _global(query, query.output.target)
        written[target] = written.get(target, 0) + 1
    while pending:
        waiting: list[Query] = []
        for query in pending:
            if not all(_global(query, s) in carried for s in streams_of(query.input)):
                waiting.append(query)
                continue
            reason = _unfit(around, query, carried)
            if reason:
                return f"{query.name}: {reason}"
            _carry(query, carried, written)
        if len(waiting) == len(pending):
            return "streams feed back into themselves"
        pending = waiting
    return ""


def _carry(query: Query, carried: Carried, written: dict[str, int]) -> None:
    """The attributes of the target that are the key; known once all its writers are."""
    target = _global(query, query.output.target)
    own = {slot: carried[_global(query, stream)] for slot, stream in slots_of(query.input).items()}
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


def _unfit(around: _Around, query: Query, carried: Carried) -> str:
    if query.partition:
        return _unfit_partition(around, query, carried)
    if not stateful(query):
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
            if aggregates(query) and not grouped_by & set(key.items()):
                return "aggregates over all keys"
            return ""
    return "no equality ties its inputs together"


def _unfit_partition(around: _Around, query: Query, carried: Carried) -> str:
    partition = around.partitions[query.partition]
    keys = {key.stream: key for key in partition.keys}
    for stream in streams_of(query.input):
        if stream.startswith("#"):
            if INNER_KEY not in carried[_global(query, stream)]:
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


def stateful(query: Query) -> bool:
    return (
        bool(query.partition)
        or not isinstance(query.input, StreamInput)
        or query.input.window is not None
        or any(_procedural(h) for h in handlers_of(query.input))
        or query.rate is not None
        or aggregates(query)
    )


def _procedural(handler: Handler) -> bool:
    return isinstance(handler, StreamCall) and handler.procedure is not None


def aggregates(query: Query) -> bool:
    exprs = [item.expr for item in query.select.items]
    if query.select.having is not None:
        exprs.append(query.select.having)
    return any(isinstance(node, Agg) for expr in exprs for node in walk(expr))


def _blocked(around: _Around, query: Query) -> str:
    """The first reason why no key is legal for a query, '' for none."""
    reason = next(
        (f"'{n}' belongs to all keys" for n in _touched(query) if n in around.stores), ""
    )
    if not reason and stateful(query) and not query.partition:
        reason = _looks_at_all(query)
    partition = around.partitions.get(query.partition)
    if not reason and partition and partition.state and partition.state.limit is not None:
        reason = "a limit counts the keys of all tasks together"
    return f"{query.name}: {reason}" if reason else ""


def _looks_at_all(query: Query) -> str:
    select = query.select
    if any(_procedural(h) for h in handlers_of(query.input)):
        return "a procedure sees all events; put it in a partition to key it"
    if query.state is not None and query.state.limit is not None:
        return "a limit counts the matches of all keys together"
    if query.rate:
        return "a rate limit counts all rows together"
    if select.order_by or select.limit is not None or select.offset:
        return "order by and limit look at all groups together"
    if aggregates(query) and not select.group_by:
        return "aggregates over all events, no group by"
    for window in windows_of(query.input):
        if window.name not in KEYABLE_WINDOWS:
            return f"what leaves #window.{window.name} depends on all events together"
    return _one_match_at_a_time(query.input) if isinstance(query.input, StateInput) else ""


def unkeyed_pattern(query_input: StateInput) -> str:
    """Why a pattern that repeats cannot be keyed; one that matches once needs no key."""
    why = _one_match_at_a_time(query_input)
    if why.startswith("without"):
        return ""
    if not why and not correlate(query_input):
        why = "no equality ties its elements together"
    return why


def _one_match_at_a_time(query_input: StateInput) -> str:
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


def _exprs(query: Query) -> list[Expr]:
    """Every condition and expression of a query that may look into a table."""
    found = [h.condition for h in handlers_of(query.input) if isinstance(h, Filter)]
    found += [item.expr for item in query.select.items]
    if isinstance(query.input, JoinInput) and query.input.on is not None:
        found.append(query.input.on)
    if query.select.having is not None:
        found.append(query.select.having)
    return found
