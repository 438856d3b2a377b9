"""Hold annotations, `@name(key='v', 'v', @nested(...))`, as data."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Annotation:
    """A value without a key has the key ''."""

    name: str
    pairs: tuple[tuple[str, str], ...] = ()
    nested: tuple[Annotation, ...] = ()

    def get(self, key: str, default: str = "") -> str:
        return next((v for k, v in self.pairs if k.lower() == key.lower()), default)
