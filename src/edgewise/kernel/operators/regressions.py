"""Fit straight lines to a stream: `timeseries:regress`, `forecast`, `outlier` and theirs by time.

Ordinary least squares over the last n events, or those of the last ms. A coefficient that is not
significant at the confidence asked for is 0, as in the original. Student's distribution comes from
the regularised incomplete beta function, by its continued fraction.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from edgewise.errors import BadEvent
from edgewise.kernel.operators.processors import Processor
from edgewise.kernel.runtime import Chunk, Row, Runtime, State

EVERY, LENGTH_MAX, CONFIDENCE = 1, 1_000_000, 0.95
STEPS_MAX, TINY = 300, 1e-30  # of the continued fraction
_POINTS, _SEEN, _BEFORE = 0, 1, 2


def student_tail(t: float, freedom: float) -> float:
    """The probability of a value further from 0 than t, on either side."""
    if math.isnan(t):
        return math.nan
    x = freedom / (freedom + t * t) if math.isfinite(t) else 0.0
    return incomplete_beta(freedom / 2, 0.5, x)


def incomplete_beta(a: float, b: float, x: float) -> float:
    """Regularised: from 0 at x = 0 to 1 at x = 1."""
    if x <= 0 or x >= 1:
        return 0.0 if x <= 0 else 1.0
    scale = math.exp(
        math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
        + a * math.log(x) + b * math.log1p(-x)
    )  # fmt: skip
    if x > (a + 1) / (a + b + 2):
        return 1 - scale * _fraction(b, a, 1 - x) / b
    return scale * _fraction(a, b, x) / a


def _fraction(a: float, b: float, x: float) -> float:
    """Lentz's method."""
    c, d = 1.0, 1 / _not_zero(1 - (a + b) * x / (a + 1))
    found = d
    for m in range(1, STEPS_MAX):
        for term in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 / _not_zero(1 + term * d)
            c = _not_zero(1 + term / c)
            found *= d * c
        if abs(d * c - 1) < 1e-15:
            break
    return found


def _not_zero(value: float) -> float:
    return value if abs(value) > TINY else TINY


def fit(points: list[tuple[float, ...]], confidence: float) -> list[float]:
    """Standard error, intercept and slopes of y over the x of each point."""
    width = len(points[0])
    freedom = len(points) - width
    if freedom <= 0:
        return [0.0] * (width + 1)
    y = np.array([p[0] for p in points])
    x = np.array([(1.0, *p[1:]) for p in points])
    try:
        inverse = np.linalg.inv(x.T @ x)
    except np.linalg.LinAlgError:
        return [math.nan, math.nan, math.nan] if width == 2 else [0.0] * (width + 1)
    betas = inverse @ x.T @ y
    error = float(np.sum((x @ betas - y) ** 2)) / freedom
    found = [math.sqrt(error)]
    for j, beta in enumerate(betas.tolist()):
        spread = math.sqrt(abs(float(inverse[j, j])) * error)
        t = abs(beta) / spread if spread else (math.inf if beta else math.nan)
        tail = student_tail(t, freedom)
        found.append(0.0 if tail > 1 - confidence else beta)
    return found


class Regression(Processor):
    """State: `[points, events seen, coefficients before]`. `fixed` arguments stand before y."""

    fixed = 0  # arguments that a call without settings has before y

    def __init__(self, rt: Runtime, node: int, cell: int, settings: int) -> None:
        super().__init__(rt, node, cell)
        self.settings = settings  # arguments before y

    def fresh(self) -> list[Any]:
        return [[], 0, None]

    def process(
        self, state: State, kind: int, ts: int, row: Row, args: tuple[Any, ...], out: Chunk
    ) -> None:
        cells = state[self.cell]
        head, values = args[: self.settings], args[self.settings :]
        if any(v is None for v in (*head, *values)):
            raise BadEvent("a regression takes no null")
        every, confidence, extra = self.keep(cells, head, tuple(map(float, values)))
        before = cells[_BEFORE]
        cells[_SEEN] += 1
        if cells[_SEEN] % every:
            cells[_BEFORE] = None
            return
        points = [p for _, p in cells[_POINTS]]
        cells[_BEFORE] = found = fit(points, confidence)
        out.append((kind, ts, (*row, *found, *self.conclude(found, before, extra, points[-1]))))

    def keep(
        self, cells: list[Any], head: tuple[Any, ...], point: tuple[float, ...]
    ) -> tuple[int, float, float]:
        """Adds the point, removes those that are too old; gives the settings."""
        every, length, confidence = head[:3] if len(head) >= 3 else self.defaults()
        cells[_POINTS].append((self.rt.now, point))
        del cells[_POINTS][: -int(length)]
        return int(every), float(confidence), float(head[-1]) if self.fixed else 0.0

    def defaults(self) -> tuple[int, int, float]:
        return EVERY, LENGTH_MAX, CONFIDENCE

    def conclude(
        self, found: list[float], before: Any, extra: float, point: tuple[float, ...]
    ) -> tuple[Any, ...]:
        """What is said besides the coefficients."""
        del found, before, extra, point
        return ()


class Forecast(Regression):
    fixed = 1

    def defaults(self) -> tuple[int, int, float]:
        return EVERY, 10_000, 0.9

    def conclude(
        self, found: list[float], before: Any, extra: float, point: tuple[float, ...]
    ) -> tuple[Any, ...]:
        del before, point
        return (found[-2] + found[-1] * extra,)


class Outlier(Regression):
    fixed = 1

    def conclude(
        self, found: list[float], before: Any, extra: float, point: tuple[float, ...]
    ) -> tuple[Any, ...]:
        """Whether the event is further from the line before it than so many standard errors."""
        del found
        if before is None:
            return (False,)
        error, intercept, slope = before[:3]
        expected = intercept + slope * point[1]
        return (point[0] < expected - extra * error or point[0] > expected + extra * error,)


class _ByTime:
    """Points of the last ms, n at most: settings `time, length[, extra][, every, confidence]`."""

    rt: Runtime
    fixed: int

    def keep(
        self, cells: list[Any], head: tuple[Any, ...], point: tuple[float, ...]
    ) -> tuple[int, float, float]:
        span, length, *rest = head
        extra = rest.pop(0) if self.fixed else 0.0
        every, confidence = rest or (EVERY, CONFIDENCE)
        now, points = self.rt.now, cells[_POINTS]
        points.append((now, point))
        while points[0][0] + span <= now:
            del points[0]
        if len(points) > length:
            del points[0]
        return int(every), float(confidence), float(extra)


class RegressionByTime(_ByTime, Regression):
    """`lengthTimeRegress`."""


class ForecastByTime(_ByTime, Forecast):
    """`lengthTimeForecast`."""


class OutlierByTime(_ByTime, Outlier):
    """`lengthTimeOutlier`."""
