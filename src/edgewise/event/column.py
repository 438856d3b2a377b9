"""Hold one attribute of many events as an Arrow array, and as Python values once they are needed.

A kernel that runs event by event iterates and gets Python values; one that takes many events at
once uses the array, and values that it filters out are never created in Python. Kernels and
engines use it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, overload

import numpy as np
import pyarrow as pa

from edgewise.event.arrow import ARROW_TYPES, from_value, to_column
from edgewise.event.types import AttrType

FEW_VALUES = 32  # fewer are converted one by one, which is faster then
ACCESS_COST = 16  # one access by index costs as much as converting so many values at once
_WHOLE = (AttrType.INT, AttrType.LONG)
_NUMBERS = (*_WHOLE, AttrType.FLOAT, AttrType.DOUBLE)


class Column(Sequence[Any]):
    """Immutable; slices share its memory."""

    __slots__ = ("_access_cost", "_coded", "_values", "arrow", "kind")

    def __init__(self, arrow: Any, kind: AttrType) -> None:
        self.arrow = arrow
        self.kind = kind
        self._values: list[Any] | None = None
        self._coded: Any = None
        self._access_cost = 0

    @property
    def values(self) -> list[Any]:
        if self._values is None:
            self._values = self._read()
        return self._values

    def whole(self) -> Any:
        """A 64 bit integer array; None if the type is another one or a value is null."""
        return self.numbers() if self.kind in _WHOLE else None

    def numbers(self) -> Any:
        """A 64 bit integer or float array; None if the type is no number or a value is null."""
        if self.kind not in _NUMBERS or self.arrow.null_count:
            return None
        return self.arrow.to_numpy().astype(
            np.int64 if self.kind in _WHOLE else np.float64, copy=False
        )

    def codes(self) -> tuple[Any, int]:
        """The index of each value among the distinct ones, and their count; null is one."""
        if self._coded is None:
            self._coded = self.arrow.dictionary_encode("encode")
        return self._coded.indices.to_numpy(), len(self._coded.dictionary)

    def coded(self) -> tuple[Any, list[Any]]:
        """The index of each value among the distinct ones, and the distinct values."""
        codes, _ = self.codes()
        return codes, [from_value(v, self.kind) for v in self._coded.dictionary.to_pylist()]

    def take(self, indexes: Any) -> Column:
        if self.kind in _NUMBERS and not self.arrow.null_count:
            return Column(pa.array(self.arrow.to_numpy()[indexes]), self.kind)
        return Column(self.arrow.take(pa.array(indexes, pa.int64())), self.kind)

    def __len__(self) -> int:
        return len(self.arrow)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.values)

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> Column: ...
    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            low, high, _ = index.indices(len(self))
            part = Column(self.arrow.slice(low, max(0, high - low)), self.kind)
            part._values = None if self._values is None else self._values[index]
            return part
        if self._values is None:
            self._access_cost += ACCESS_COST
            if self._access_cost < len(self):
                return from_value(self.arrow[index].as_py(), self.kind)
        return self.values[index]

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Column) and self.kind is other.kind:
            return bool(self.arrow.equals(other.arrow))
        return list(self) == list(other) if isinstance(other, Sequence) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def _read(self) -> list[Any]:
        few = len(self.arrow) < FEW_VALUES
        if self.kind in _NUMBERS and not few and not self.arrow.null_count:
            listed: list[Any] = self.arrow.to_numpy().tolist()
            return listed
        if self.kind is AttrType.STRING and not few:
            codes, distinct = self.coded()
            return np.array(distinct, dtype=object)[codes].tolist() if distinct else []
        return [from_value(v, self.kind) for v in self.arrow.to_pylist()]


def to_arrow_array(values: Sequence[Any], kind: AttrType) -> Any:
    """As `to_column`, without a conversion if the values are in Arrow already."""
    if isinstance(values, Column) and values.arrow.type == ARROW_TYPES[kind]:
        return values.arrow
    return to_column(list(values) if isinstance(values, Column) else values, kind)
