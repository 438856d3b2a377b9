"""Find the owner of each part of a kernel's state, by definition and not by position in the app.

Every query, store and partition has an id of two parts: what it is defined as (its text without
its position, the shapes of what it reads), and the shape of the state it keeps. Where two plans
have an owner of the same id, its state means the same in both and can be carried over. One that is
defined the same but keeps its state in another shape, because its neighbours are others now, can
have it rebuilt from the log; one that is defined otherwise begins anew.
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from edgewise.errors import Span
from edgewise.kernel import serialize
from edgewise.kernel.codegen.fragment_builder import FragmentBuilder
from edgewise.plan.fragments import Fragment
from edgewise.plan.nodes import Query, streams_of

Keys = tuple[tuple[str, tuple[str, ...]], ...]


@dataclass(frozen=True, slots=True)
class StateLayout:
    """Ids of the owners: of each cell, of each timer, of each cell inside a partition."""

    keys: Keys
    by_key: bool
    cells: tuple[str, ...]
    nodes: tuple[str, ...]
    inside: dict[str, tuple[str, ...]]
    names: dict[str, str]  # id -> what the app calls it, also of those without state

    def only(self, ids: AbstractSet[str]) -> StateLayout:
        """The same positions, as if only these owners had anything in them."""

        def these(owners: tuple[str, ...]) -> tuple[str, ...]:
            return tuple(owner if owner in ids else "" for owner in owners)

        return replace(
            self,
            cells=these(self.cells),
            nodes=these(self.nodes),
            inside={i: these(owners) for i, owners in self.inside.items() if i in ids},
            names={i: name for i, name in self.names.items() if i in ids},
        )

    def alike(self, other: StateLayout) -> bool:
        """States of one key in one are states of that key in the other."""
        return (self.keys, self.by_key) == (other.keys, other.by_key)


@dataclass(frozen=True, slots=True)
class PlanComparison:
    """What became of queries, stores and partitions from one plan to the next, by name."""

    kept: tuple[str, ...] = ()
    rebuilt: tuple[str, ...] = ()  # the same, but kept by other keys: read again from the log
    changed: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()

    def __str__(self) -> str:
        parts = (
            ("kept", self.kept),
            ("rebuilt from the log", self.rebuilt),
            ("changed, begins anew", self.changed),
            ("new", self.added),
            ("gone", self.removed),
        )
        return "; ".join(f"{word}: {', '.join(names)}" for word, names in parts if names)


def compare(
    old: Iterable[StateLayout], new: Iterable[StateLayout], rebuilt: AbstractSet[str] = frozenset()
) -> PlanComparison:
    """`rebuilt` are ids whose state was made again from history."""
    before = {i: layout for layout in old for i in layout.names}
    after = {i: layout for layout in new for i in layout.names}
    kept = [i for i, mine in after.items() if i in before and before[i].alike(mine)]
    same = {*kept, *rebuilt}
    again = {defined(i) for i in rebuilt}
    was = {before[i].names[i] for i in before if i not in same and defined(i) not in again}
    now = {after[i].names[i] for i in after if i not in same}
    return PlanComparison(
        tuple(after[i].names[i] for i in kept),
        tuple(sorted(after[i].names[i] for i in rebuilt if i not in kept)),
        tuple(sorted(now & was)),
        tuple(sorted(now - was)),
        tuple(sorted(was - now)),
    )


def defined(owner: str) -> str:
    """The part of an id that says what its owner is defined as."""
    return owner.split("-", maxsplit=1)[0]


def layout_of(builder: FragmentBuilder, fragment: Fragment) -> StateLayout:
    """The layout of a fragment whose source is written."""
    ids: dict[str, str] = {}
    for owner in _owners(builder):
        parts = (_definition(builder, owner), _shape(builder, owner))
        base = "-".join(serialize.fingerprint(part).hex() for part in parts)
        same = sum(i.split("#")[0] == base for i in ids.values())
        ids[owner] = f"{base}#{same}" if same else base
    return StateLayout(
        fragment.keys,
        builder.by_key is not None,
        tuple(ids[o] for o in builder.root.owners),
        tuple(ids[o] for o in builder.timer_owners),
        {
            ids[f"partition {name}"]: tuple(ids[o] for o in scope.owners)
            for name, scope in builder.scopes.items()
            if name
        },
        {i: owner for owner, i in ids.items()},
    )


def _owners(builder: FragmentBuilder) -> list[str]:
    app = builder.app
    found = [f"query {q.name}" for q in builder.queries]
    found += [f"partition {name}" for name in builder.scopes if name]
    found += [f"table {t.name}" for t in app.tables]
    found += [f"window {w.name}" for w in app.windows]
    found += [f"aggregation {a.name}" for a in app.aggregations]
    return [*found, *(f"trigger {t.name}" for t in app.triggers)]


def _definition(builder: FragmentBuilder, owner: str) -> object:
    kind, name = owner.split(" ", 1)
    app = builder.app
    match kind:
        case "query":
            query = next(q for q in builder.queries if q.name == name)
            return _query(builder, query)
        case "partition":
            return _partition(builder, name)
        case "table":
            return app.table(name)
        case "window":
            return app.window(name)
        case "aggregation":
            found = next(a for a in app.aggregations if a.name == name)
            return found, builder.schema(found.input.stream)
        case _:
            return next(t for t in app.triggers if t.name == name)


def _query(builder: FragmentBuilder, query: Query) -> object:
    bare = replace(query, name="", span=Span(1, 1), partition="")
    reads = [builder.schema(n, query.partition) for n in streams_of(query.input)]
    return bare, reads, _partition(builder, query.partition) if query.partition else None


def _partition(builder: FragmentBuilder, name: str) -> object:
    found = builder.app.partition(name)
    assert found is not None
    return found.keys, found.state, [builder.schema(k.stream) for k in found.keys]


def _shape(builder: FragmentBuilder, owner: str) -> list[str]:
    """How the cells of an owner look when new, without the names of this source."""
    texts = []
    for position, scope in enumerate(builder.scopes.values()):
        for text, mine in zip(scope.fresh, scope.owners, strict=True):
            if mine == owner:
                shape = builder.writer.stems.without_names(text)
                texts.append(f"{'inside' if position else 'root'} {shape}")
    return texts
