"""A fragment is a part of a plan that runs in one place, keyed or not."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fragment:
    """Queries that run together, in order of definition, on the input streams they lead back to.

    `keys` gives, per input stream, the attributes that make the key of its state. Without keys a
    fragment runs on one task, unless it is `stateless`; `why` says what blocks a better choice.
    """

    name: str
    queries: tuple[str, ...]
    inputs: tuple[str, ...] = ()
    keys: tuple[tuple[str, tuple[str, ...]], ...] = ()
    stateless: bool = False
    why: str = ""

    @property
    def keyed(self) -> bool:
        return bool(self.keys)

    def key_of(self, stream: str) -> tuple[str, ...]:
        return dict(self.keys).get(stream, ())
