"""Follow things on a map: the stream processors of `geo:`.

They keep, by id, where each thing is or whether it was inside, and pass events at which that
changes. Geometry is in `plan.functions.geo`; state holds coordinates and texts only.
"""

from __future__ import annotations

import math
from typing import Any

from edgewise.errors import BadEvent
from edgewise.kernel.operators.processors import Processor
from edgewise.kernel.runtime import Chunk, Row, State
from edgewise.plan.functions.geo import DEGREE_M, load_shapely, read_geometry, read_shape

SENSOR_MS = 300_000  # a sensor that said nothing for so long is forgotten
THINGS_MAX = 100_000  # ids that are followed; the oldest is forgotten then


def require(name: str, args: tuple[Any, ...]) -> None:
    if any(arg is None for arg in args):
        raise BadEvent(f"{name}: an argument is null")


def limit(held: dict[Any, Any]) -> None:
    if len(held) > THINGS_MAX:
        del held[next(iter(held))]


class Crosses(Processor):
    """Passes an event whose thing comes into the fence or leaves it. State: ids inside."""

    def fresh(self) -> dict[Any, Any]:
        return {}

    def process(
        self, state: State, kind: int, ts: int, row: Row, args: tuple[Any, ...], out: Chunk
    ) -> None:
        require("geo:crosses", args)
        inside, (name, *rest) = state[self.cell], args
        shape, fence = read_shape(*rest)
        now = bool(read_geometry(fence[0]).contains(shape))
        if now != (name in inside):
            if now:
                inside[name] = True
                limit(inside)
            else:
                del inside[name]
            out.append((kind, ts, (*row, now)))


class Stationary(Processor):
    """Passes an event whose thing stops within a radius, or moves on. State: shape, stopped."""

    def fresh(self) -> dict[Any, Any]:
        return {}

    def process(
        self, state: State, kind: int, ts: int, row: Row, args: tuple[Any, ...], out: Chunk
    ) -> None:
        require("geo:stationary", args)
        held, (name, *rest) = state[self.cell], args
        shape, (radius,) = read_shape(*rest)
        before = held.get(name)
        if before is None:
            held[name] = (shape.wkt, False)
            limit(held)
            return
        near = shape.distance(load_shapely().from_wkt(before[0])) <= float(radius) / DEGREE_M
        if near != before[1]:
            out.append((kind, ts, (*row, near)))
        held[name] = (before[0], True) if near else (shape.wkt, False)


class Proximity(Processor):
    """Passes an event for each other thing that it comes near to or leaves.

    State: `[shapes by id, pairs that are near]`.
    """

    def fresh(self) -> list[Any]:
        return [{}, {}]

    def process(
        self, state: State, kind: int, ts: int, row: Row, args: tuple[Any, ...], out: Chunk
    ) -> None:
        require("geo:proximity", args)
        (shapes, pairs), (name, *rest) = state[self.cell], args
        shape, (radius,) = read_shape(*rest)
        shapes[name] = shape.wkt
        limit(shapes)
        for other, text in shapes.items():
            if other == name:
                continue
            near = shape.distance(load_shapely().from_wkt(text)) <= float(radius) / DEGREE_M
            pair = (min(name, other), max(name, other))
            if near == (pair in pairs):
                continue
            if near:
                pairs[pair] = True
                limit(pairs)
            else:
                del pairs[pair]
            out.append((kind, ts, (*row, other, near)))


class ClosestPoints(Processor):
    """Adds the points at which a shape and a fence are nearest to each other."""

    def process(
        self, state: State, kind: int, ts: int, row: Row, args: tuple[Any, ...], out: Chunk
    ) -> None:
        require("geo:closestPoints", args)
        shape, fence = read_shape(*args)
        line = load_shapely().shortest_line(shape, read_geometry(fence[0]))
        (x1, y1), (x2, y2) = line.coords
        out.append((kind, ts, (*row, x1, y1, x2, y2)))


class LocationApproximate(Processor):
    """Adds the mean position of the sensors that see a thing, by weight. State: sensors by id."""

    def fresh(self) -> dict[Any, Any]:
        return {}

    def process(
        self, state: State, kind: int, ts: int, row: Row, args: tuple[Any, ...], out: Chunk
    ) -> None:
        require("geo:locationApproximate", args)
        name, latitude, longitude, proximity, sensor, weight, time = args
        sensors = state[self.cell].setdefault(name, {})
        limit(state[self.cell])
        known = sensors.get(sensor)
        if known is None or known[3] < time:
            if proximity.upper() in {"ENTER", "RANGE"}:
                sensors[sensor] = (latitude, longitude, weight, time)
            else:
                sensors.pop(sensor, None)
        for old in [s for s, held in sensors.items() if time - held[3] > SENSOR_MS]:
            del sensors[old]
        if not sensors:
            out.append((kind, ts, (*row, latitude, longitude, False)))
            return
        out.append((kind, ts, (*row, *mean_position(list(sensors.values())), True)))


def mean_position(sensors: list[tuple[float, float, float, int]]) -> tuple[float, float]:
    """Latitude and longitude of the weighted mean on the sphere."""
    total = sum(weight for _, _, weight, _ in sensors)
    x = y = z = 0.0
    for latitude, longitude, weight, _ in sensors:
        here, across = math.radians(latitude), math.radians(longitude)
        share = weight / total if total else 0.0
        x += math.cos(here) * math.cos(across) * share
        y += math.cos(here) * math.sin(across) * share
        z += math.sin(here) * share
    return math.degrees(math.atan2(z, math.hypot(x, y))), math.degrees(math.atan2(y, x))
