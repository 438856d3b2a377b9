"""Find local extremes of a series: `extrema:minMax`, `kernelMinMax` and `kalmanMinMax`.

An extreme is known only when values after it were seen, so its event comes out later, once.
Kernel and Kalman smooth the series first and look for the extreme near a smoothed one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from edgewise.errors import BadEvent
from edgewise.kernel.operators.processors import Processor
from edgewise.kernel.runtime import CURRENT, Chunk, Row, State

REMEMBERED = 6  # extremes that are known to have come out
KALMAN_REACH, SMOOTHED_REACH = 10, 2
SMALLEST = 5e-324  # what the original takes for less than every value: only positive ones are more
_EVENTS, _VALUES, _OUT = 0, 1, 2


def gaussian_smooth(values: Sequence[float], bandwidth: float) -> list[float]:
    """Each value as the mean of all, weighted by a Gaussian of the distance."""
    weights = [math.exp(-(i * i) / (2.0 * bandwidth * bandwidth)) for i in range(len(values))]
    found = []
    for i in range(len(values)):
        around = [weights[abs(i - j)] for j in range(len(values))]
        total = sum(w * v for w, v in zip(around, values, strict=True))
        found.append(total / sum(around))
    return found


def kalman_smooth(values: Sequence[float], noise: float, error: float) -> list[float]:
    """A one-dimensional Kalman filter that begins at zero and knows nothing."""
    estimate, variance = 0.0, 1.0
    found = []
    for value in values:
        predicted = variance + noise
        gain = predicted / (predicted + error)
        variance = error * predicted / (error + predicted)
        estimate += (value - estimate) * gain
        found.append(estimate)
    return found


def find_extreme(values: Sequence[float], before: int, after: int, *, largest: bool) -> int | None:
    """The last index whose value is the extreme of those around it."""
    for i in range(len(values) - after - 1, before - 1, -1):
        around = values[i - before : i + after + 1]
        best = max(*around, SMALLEST) if largest else min(around)
        if values[i] == best:
            return i
    return None


class Smoothed(Processor):
    """What kernel and Kalman share. State: `[events, values, events that came out]`."""

    def fresh(self) -> list[Any]:
        return [[], [], []]

    def process(
        self, state: State, kind: int, ts: int, row: Row, args: tuple[Any, ...], out: Chunk
    ) -> None:
        cells, (value, *settings, size, wanted) = state[self.cell], args
        if value is None:
            raise BadEvent("the attribute that is searched for extremes is null")
        cells[_EVENTS].append((ts, row))
        cells[_VALUES].append(float(value))
        if len(cells[_EVENTS]) <= size:
            return
        smoothed = self.smooth(cells[_VALUES], settings)
        found = []
        for name, largest in (("max", True), ("min", False)):
            if name in wanted.lower():
                at = self.search(cells, smoothed, size, largest=largest)
                if at is not None:
                    found.append((at[0], (CURRENT, at[1][0], (*at[1][1], name))))
        out.extend(event for _, event in sorted(found, key=lambda held: held[0]))
        del cells[_EVENTS][0], cells[_VALUES][0]

    def smooth(self, values: list[float], settings: list[float]) -> list[float]:
        raise NotImplementedError

    def search(
        self, cells: list[Any], smoothed: list[float], size: int, *, largest: bool
    ) -> tuple[int, Any] | None:
        raise NotImplementedError

    def remember(self, cells: list[Any], event: Any) -> bool:
        """Whether it did not come out before."""
        if event in cells[_OUT]:
            return False
        if len(cells[_OUT]) >= REMEMBERED:
            del cells[_OUT][0]
        cells[_OUT].append(event)
        return True


class KernelExtremes(Smoothed):
    def smooth(self, values: list[float], settings: list[float]) -> list[float]:
        return gaussian_smooth(values, settings[0])

    def search(
        self, cells: list[Any], smoothed: list[float], size: int, *, largest: bool
    ) -> tuple[int, Any] | None:
        near = find_extreme(smoothed, 1, 1, largest=largest)
        if near is None:
            return None
        at = find_extreme(cells[_VALUES], size // 5, size // 3, largest=largest)
        if at is None or at - near > size // 5 or near - at > size // 2:
            return None
        event = cells[_EVENTS][at]
        if not self.remember(cells, event):
            return None
        del cells[_EVENTS][0], cells[_VALUES][0]
        return at, event


class KalmanExtremes(Smoothed):
    def smooth(self, values: list[float], settings: list[float]) -> list[float]:
        return kalman_smooth(values, *settings)

    def search(
        self, cells: list[Any], smoothed: list[float], size: int, *, largest: bool
    ) -> tuple[int, Any] | None:
        del size
        if find_extreme(smoothed, SMOOTHED_REACH, SMOOTHED_REACH, largest=largest) is None:
            return None
        at = find_extreme(cells[_VALUES], KALMAN_REACH, KALMAN_REACH, largest=largest)
        if at is None or not self.remember(cells, cells[_EVENTS][at]):
            return None
        return at, cells[_EVENTS][at]


# A point of `BoundedExtremes`: event, value, and for each sign whether it may still be one.
_EVENT, _VALUE, _OPEN = 0, 1, 2


class BoundedExtremes(Processor):
    """An extreme from which values change by some percent, before and after it, within bounds.

    State: `[points in order, candidates for the maximum, candidates for the minimum]`.
    """

    def fresh(self) -> list[Any]:
        return [[], [], []]

    def process(
        self, state: State, kind: int, ts: int, row: Row, args: tuple[Any, ...], out: Chunk
    ) -> None:
        points, *candidates = state[self.cell]
        value, pre, post, pre_change, post_change, wanted = args
        if value is None:
            raise BadEvent("the attribute that is searched for extremes is null")
        point: list[Any] = [(ts, row), float(value), [True, True]]
        points.append(point)
        removed = points.pop(0) if len(points) > pre + post else None
        for which, (name, sign) in enumerate((("max", 1), ("min", -1))):
            if name not in wanted.lower():
                continue
            best = _update(candidates[which], point, removed, sign)
            limit = best[_VALUE] - sign * best[_VALUE] * post_change / 100
            if best[_OPEN][which] and sign * point[_VALUE] <= sign * limit:
                bounds = _bounds(points, best, (pre, post, pre_change), sign)
                best[_OPEN][which] = False
                if bounds is not None:
                    found_ts, found = best[_EVENT]
                    out.append((CURRENT, found_ts, (*found, name, *bounds)))


def _update(candidates: list[Any], point: Any, removed: Any, sign: int) -> Any:
    """Candidates from best to newest, without those that the new point beats, and the removed."""
    while candidates and sign * candidates[-1][_VALUE] < sign * point[_VALUE]:
        candidates.pop()
    if removed is not None:
        candidates[:] = [held for held in candidates if held is not removed]
    candidates.append(point)
    return candidates[0]


def _bounds(
    points: list[Any], best: Any, limits: tuple[int, int, float], sign: int
) -> tuple[int, int] | None:
    """How far before it values had changed enough, and how far after; None where not."""
    pre, post, change = limits
    at = next(i for i, held in enumerate(points) if held is best)
    after = len(points) - 1 - at
    if after > post:
        return None
    if pre == 0:
        return 0, after
    limit = best[_VALUE] - sign * best[_VALUE] * change / 100
    for before in range(1, min(pre, at) + 1):
        if sign * points[at - before][_VALUE] <= sign * limit:
            return before, after
    return None
