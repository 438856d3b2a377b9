"""One attribute of many events: Arrow outside, Python values inside, made when somebody looks.

A kernel that goes event by event iterates and gets Python values; one that takes a run at once
asks for the array, and what it takes out of a column never becomes a Python value at all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, overload

import numpy as np
import pyarrow as pa

from edgewise.event.arrow import ARROW_TYPES, from_value, to_column
from edgewise.event.types import AttrType

FEW = 32  # values that are read one by one
SINGLE_LOOK = 16  # values are made together for the price of one look at a single one
_WHOLE = (AttrType.INT, AttrType.LONG)
_NUMBERS = (*_WHOLE, AttrType.FLOAT, AttrType.DOUBLE)


class Column(Sequence[Any]):
    """Never changes; slices share its memory."""

    __slots__ = ("_coded", "_looks", "_values", "arrow", "kind")

    def __init__(self, arrow: Any, kind: AttrType) -> None:
        self.arrow = arrow
        self.kind = kind
        self._values: list[Any] | None = None
        self._coded: Any = None
        self._looks = 0

    @property
    def values(self) -> list[Any]:
        if self._values is None:
            self._values = self._read()
        return self._values

    def whole(self) -> Any:
        """An array of 64 bit whole numbers; None where it is of another type or one is null."""
        return self.numbers() if self.kind in _WHOLE else None

    def numbers(self) -> Any:
        """The same also of floating ones, as 64 bit ones."""
        if self.kind not in _NUMBERS or self.arrow.null_count:
            return None
        return self.arrow.to_numpy().astype(
            np.int64 if self.kind in _WHOLE else np.float64, copy=False
        )

    def codes(self) -> tuple[Any, int]:
        """Which of the distinct values each is, and how many there are; null is one of them."""
        if self._coded is None:
            self._coded = self.arrow.dictionary_encode("encode")
        return self._coded.indices.to_numpy(), len(self._coded.dictionary)

    def coded(self) -> tuple[Any, list[Any]]:
        """The same, and the distinct values."""
        codes, _ = self.codes()
        return codes, [from_value(v, self.kind) for v in self._coded.dictionary.to_pylist()]

    def take(self, places: Any) -> Column:
        if self.kind in _NUMBERS and not self.arrow.null_count:
            return Column(pa.array(self.arrow.to_numpy()[places]), self.kind)
        return Column(self.arrow.take(pa.array(places, pa.int64())), self.kind)

    def __len__(self) -> int:
        return len(self.arrow)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.values)

    @overload
    def __getitem__(self, place: int) -> Any: ...
    @overload
    def __getitem__(self, place: slice) -> Column: ...
    def __getitem__(self, place: int | slice) -> Any:
        if isinstance(place, slice):
            low, high, _ = place.indices(len(self))
            part = Column(self.arrow.slice(low, max(0, high - low)), self.kind)
            part._values = None if self._values is None else self._values[place]
            return part
        if self._values is None:
            self._looks += SINGLE_LOOK
            if self._looks < len(self):
                return from_value(self.arrow[place].as_py(), self.kind)
        return self.values[place]

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Column) and self.kind is other.kind:
            return bool(self.arrow.equals(other.arrow))
        return list(self) == list(other) if isinstance(other, Sequence) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def _read(self) -> list[Any]:
        few = len(self.arrow) < FEW
        if self.kind in _NUMBERS and not few and not self.arrow.null_count:
            listed: list[Any] = self.arrow.to_numpy().tolist()
            return listed
        if self.kind is AttrType.STRING and not few:
            codes, distinct = self.coded()
            return np.array(distinct, dtype=object)[codes].tolist() if distinct else []
        return [from_value(v, self.kind) for v in self.arrow.to_pylist()]


def arrow_of(values: Sequence[Any], kind: AttrType) -> Any:
    """As `to_column`, without a detour for what is Arrow already."""
    if isinstance(values, Column) and values.arrow.type == ARROW_TYPES[kind]:
        return values.arrow
    return to_column(list(values) if isinstance(values, Column) else values, kind)
