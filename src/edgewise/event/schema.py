"""Define the schema of a stream: ordered, named, typed attributes."""

from __future__ import annotations

from dataclasses import dataclass, field

from edgewise.event.types import AttrType


@dataclass(frozen=True, slots=True)
class Attribute:
    name: str
    type: AttrType


@dataclass(frozen=True, slots=True)
class Schema:
    """A named row type. Two schemas with equal attributes fit each other whatever their names."""

    name: str
    attributes: tuple[Attribute, ...]
    _indexes: dict[str, int] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        last_first = reversed(list(enumerate(self.attributes)))
        object.__setattr__(self, "_indexes", {a.name: i for i, a in last_first})

    @classmethod
    def of(cls, name: str, **types: str) -> Schema:
        """`Schema.of("S", k="string", v="int")`."""
        return cls(name, tuple(Attribute(n, AttrType(t)) for n, t in types.items()))

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(a.name for a in self.attributes)

    def index(self, name: str) -> int:
        """Position of an attribute, -1 where there is none."""
        return self._indexes.get(name, -1)

    def type_of(self, name: str) -> AttrType:
        return self.attributes[self.index(name)].type
