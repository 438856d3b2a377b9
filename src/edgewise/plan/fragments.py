"""A fragment is a part of a plan that runs in one place, keyed or not."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fragment:
    """Queries that share a key. `keys` gives, per input stream, the attributes that make it.

    An empty `keys` means one task for all events; `why` then says what blocks a better choice.
    """

    name: str
    queries: tuple[str, ...]
    keys: tuple[tuple[str, tuple[str, ...]], ...] = ()
    why: str = ""

    @property
    def keyed(self) -> bool:
        return bool(self.keys)

    def key_of(self, stream: str) -> tuple[str, ...]:
        return dict(self.keys).get(stream, ())
