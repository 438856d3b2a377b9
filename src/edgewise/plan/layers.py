"""Lay out boxes and arrows in columns, for the picture of a plan.

A box stands right of everything that points at it. An arrow over several columns gets a place in
each of them, so that it runs between the boxes and not through them. Boxes of a column stand in
the order of what points at them, which leaves few crossings.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

SWEEPS = 4
ARROW_HEIGHT = 10  # height of the place that an arrow takes in a column it passes


@dataclass(slots=True)
class Box:
    """`rank` is its column; a box made without a width is what an arrow takes of a column."""

    key: str
    width: int = 0
    height: int = ARROW_HEIGHT
    rank: int = 0
    x: int = 0
    y: int = 0

    @property
    def middle(self) -> int:
        return self.y + self.height // 2


@dataclass(frozen=True, slots=True)
class Gaps:
    x: int
    y: int


@dataclass(slots=True)
class Layers:
    """`routes` are the boxes that each arrow leads through, its ends included."""

    boxes: dict[str, Box]
    routes: list[list[Box]] = field(default_factory=list)
    right: int = 0
    bottom: int = 0


def build_layers(boxes: Iterable[Box], arrows: Iterable[tuple[str, str]]) -> Layers:
    """Boxes with their columns, arrows with their ways; nothing has a place yet."""
    found = Layers({box.key: box for box in boxes})
    pairs = list(dict.fromkeys(arrows))
    _assign_ranks(found.boxes, pairs)
    for source, target in pairs:
        first, last = found.boxes[source], found.boxes[target]
        route = [first]
        for rank in range(first.rank + 1, last.rank):
            passed = Box(f"{source}>{target}>{rank}", rank=rank)
            found.boxes[passed.key] = passed
            route.append(passed)
        found.routes.append([*route, last])
    return found


def _assign_ranks(boxes: Mapping[str, Box], arrows: list[tuple[str, str]]) -> None:
    """Longest way from the left; a ring stops growing after as many rounds as there are boxes."""
    for _ in range(len(boxes)):
        moved = False
        for source, target in arrows:
            if boxes[target].rank <= boxes[source].rank < len(boxes):
                boxes[target].rank = boxes[source].rank + 1
                moved = True
        if not moved:
            return


def position_boxes(layers: Layers, left: int, top: int, gaps: Gaps) -> None:
    """Columns from the left, each centred; sets where the picture ends."""
    columns = _arrange_columns(layers)
    heights = {r: sum(b.height + gaps.y for b in c) - gaps.y for r, c in columns.items()}
    tallest = max(heights.values(), default=0)
    x = left
    for rank in sorted(columns):
        width = max(box.width for box in columns[rank])
        y = top + (tallest - heights[rank]) // 2
        for box in columns[rank]:
            box.width = box.width or width  # an arrow runs straight through a column
            box.x, box.y = x + (width - box.width) // 2, y
            y += box.height + gaps.y
        x += width + gaps.x
    layers.right, layers.bottom = x - gaps.x, top + tallest


def _arrange_columns(layers: Layers) -> dict[int, list[Box]]:
    columns: dict[int, list[Box]] = {}
    for box in layers.boxes.values():
        columns.setdefault(box.rank, []).append(box)
    before: dict[str, list[str]] = {}
    after: dict[str, list[str]] = {}
    for route in layers.routes:
        for one, next_one in pairwise(route):
            before.setdefault(next_one.key, []).append(one.key)
            after.setdefault(one.key, []).append(next_one.key)
    for sweep in range(SWEEPS):
        ranks = sorted(columns, reverse=bool(sweep % 2))
        for rank in ranks:
            _sort_column(columns, rank, after if sweep % 2 else before)
    return columns


def _sort_column(
    columns: dict[int, list[Box]], rank: int, beside: Mapping[str, list[str]]
) -> None:
    """A column in the order of the mean place of its neighbours; without any it stays."""
    places = {
        box.key: at / len(column) for column in columns.values() for at, box in enumerate(column)
    }

    def mean(box: Box) -> float:
        near = [places[key] for key in beside.get(box.key, ())]
        return sum(near) / len(near) if near else places[box.key]

    columns[rank].sort(key=mean)
