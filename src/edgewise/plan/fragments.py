"""Define a fragment: the part of a plan that runs in one kernel, keyed or not."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fragment:
    """Queries that run together, in order of definition, on the input streams they lead back to.

    `keys` gives, per input stream, the attributes that make the key of its state. Without keys a
    fragment runs on one task, unless it is `stateless`; `why` says what blocks a better choice.
    `stores` are the tables, named windows, aggregations and triggers that live in it; None: all
    of the app.
    """

    name: str
    queries: tuple[str, ...]
    inputs: tuple[str, ...] = ()
    keys: tuple[tuple[str, tuple[str, ...]], ...] = ()
    stateless: bool = False
    why: str = ""
    stores: tuple[str, ...] | None = None

    def holds(self, store: str) -> bool:
        return self.stores is None or store in self.stores

    @property
    def keyed(self) -> bool:
        return bool(self.keys)

    def key_of(self, stream: str) -> tuple[str, ...]:
        return dict(self.keys).get(stream, ())
