"""Assign events to clusters that follow the stream: the k-means of `streamingml:`.

The first points are the first centroids; later ones pull the centroid they are nearest to, by the
decay rate. Coordinates are rounded to four digits, as in the original. An event before the first
training has no centroid yet and gets nulls. The mini batch is trained where it is full, in the
order of events, so that a replay gives the same rows.
"""

from __future__ import annotations

import math
from typing import Any

from edgewise.errors import BadEvent
from edgewise.kernel.operators.processors import Processor
from edgewise.kernel.runtime import Chunk, Row, Runtime, State

Point = tuple[float, ...]
_CENTROIDS, _POINTS, _TRAINED = 0, 1, 2


def nearest(centroids: list[Point], point: Point) -> int:
    return min(range(len(centroids)), key=lambda i: math.dist(centroids[i], point))


def add_centroids(centroids: list[Point], points: list[Point], k: int) -> list[Point]:
    """The first different points, until there are k."""
    return list(dict.fromkeys([*centroids, *points]))[: max(k, len(centroids))]


def shift(centroids: list[Point], points: list[Point], most: int) -> tuple[list[Point], set[int]]:
    """Lloyd's steps until nothing moves, and the centroids that have points."""
    taken: set[int] = set()
    for _ in range(most):
        groups: list[list[Point]] = [[] for _ in centroids]
        for point in points:
            groups[nearest(centroids, point)].append(point)
        taken = {i for i, group in enumerate(groups) if group}
        moved = [
            _rounded([sum(axis) / len(group) for axis in zip(*group, strict=True)])
            if group
            else centroids[i]
            for i, group in enumerate(groups)
        ]
        if moved == centroids:
            break
        centroids = moved
    return centroids, taken


def _rounded(values: list[float]) -> Point:
    return tuple(math.floor(v * 10_000 + 0.5) / 10_000 for v in values)


class KMeans(Processor):
    """State: `[centroids, points of the batch, whether it was trained]`."""

    def __init__(
        self,
        rt: Runtime,
        node: int,
        cell: int,
        settings: tuple[int, tuple[int, float, int, int]],
    ) -> None:
        super().__init__(rt, node, cell)
        self.first, (self.k, self.decay, self.most, self.batch) = settings

    def fresh(self) -> list[Any]:
        return [[], [], False]

    def process(
        self, state: State, kind: int, ts: int, row: Row, args: tuple[Any, ...], out: Chunk
    ) -> None:
        cells = state[self.cell]
        if any(arg is None for arg in args):
            raise BadEvent("a cluster takes no null")
        point: Point = tuple(map(float, args[self.first :]))
        extra: tuple[Any, ...] = (None,) * (len(point) + 1)
        if cells[_TRAINED]:
            centroid = cells[_CENTROIDS][nearest(cells[_CENTROIDS], point)]
            extra = (math.dist(centroid, point), *centroid)
        cells[_POINTS].append(point)
        if len(cells[_POINTS]) >= self.batch:
            self._train(cells)
        out.append((kind, ts, (*row, *extra)))

    def _train(self, cells: list[Any]) -> None:
        points, cells[_POINTS] = cells[_POINTS], []
        before = add_centroids(cells[_CENTROIDS], points, self.k)
        cells[_CENTROIDS] = before
        if len(before) == self.k:
            after, taken = shift(before, points, self.most)
            weight = self.decay if cells[_TRAINED] else 1.0
            cells[_CENTROIDS] = [
                _rounded([(1 - weight) * a + weight * b for a, b in zip(old, new, strict=True)])
                if i in taken
                else old
                for i, (old, new) in enumerate(zip(before, after, strict=True))
            ]
        cells[_TRAINED] = True
