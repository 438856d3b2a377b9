"""Compute several aggregates over the same values at once; what two share is computed once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from edgewise.eep.aggregate import Aggregate, Array
from edgewise.eep.numeric import (
    Count,
    Max,
    Mean,
    Min,
    StdDev,
    Sum,
    Variance,
    count_ranges,
    take_roots,
)


class Composite(Aggregate):
    """Several aggregates over the same values; the result is a dict by name."""

    def __init__(self, **parts: Aggregate) -> None:
        self.parts = parts
        self.invertible = all(p.invertible for p in parts.values())

    def init(self) -> Any:
        return tuple(p.init() for p in self.parts.values())

    def accumulate(self, state: Any, value: Any) -> Any:
        pairs = zip(self.parts.values(), state, strict=True)
        return tuple(p.accumulate(s, value) for p, s in pairs)

    def compensate(self, state: Any, value: Any) -> Any:
        pairs = zip(self.parts.values(), state, strict=True)
        return tuple(p.compensate(s, value) for p, s in pairs)

    def merge(self, earlier: Any, later: Any) -> Any:
        triples = zip(self.parts.values(), earlier, later, strict=True)
        return tuple(p.merge(a, b) for p, a, b in triples)

    def emit(self, state: Any) -> dict[str, Any]:
        pairs = zip(self.parts.items(), state, strict=True)
        return {name: p.emit(s) for (name, p), s in pairs}

    def tumble(self, blocks: Array) -> Any:
        return self._compute_columns(lambda part: part.tumble(blocks), blocks.shape[1])

    def slide(self, values: Array, n: int) -> Any:
        return self._compute_columns(lambda part: part.slide(values, n), n)

    def fold_ranges(self, values: Array, starts: Array) -> Any:
        return self._compute_columns(
            lambda part: part.fold_ranges(values, starts), count_ranges(values, starts)
        )

    def absorb(self, state: Any, values: Array) -> Any:
        pairs = zip(self.parts.values(), state, strict=True)
        return tuple(p.absorb(s, values) for p, s in pairs)

    def _compute_columns(self, compute: Callable[[Aggregate], Any], counts: Any) -> Array:
        """One record per result, with a field per part; what two parts share is computed once."""
        done: dict[type[Aggregate], Any] = {}

        def compute_once(part: Aggregate) -> Any:
            kind = type(part)
            if kind not in _SHARED:
                return compute(part)
            if kind not in done:
                base = {StdDev: Variance, Mean: Sum}.get(kind)
                found = compute(part) if base is None else compute_once(base())
                done[kind] = take_roots(found) if kind is StdDev else found
                if kind is Mean:
                    done[kind] = found / counts
            return done[kind]

        columns = {name: compute_once(part) for name, part in self.parts.items()}
        arrays = {name: np.asarray(column) for name, column in columns.items()}
        size = len(next(iter(arrays.values())))
        records = np.empty(size, dtype=[(name, a.dtype) for name, a in arrays.items()])
        for name, array in arrays.items():
            records[name] = array
        return records


_SHARED = (Sum, Mean, Variance, StdDev)


def Stats() -> Composite:  # noqa: N802  reads as the aggregate it makes
    """All at once: count, sum, min, max, mean, variance, standard deviation."""
    return Composite(
        count=Count(), sum=Sum(), min=Min(), max=Max(), mean=Mean(), variance=Variance(),
        stddev=StdDev(),
    )  # fmt: skip
