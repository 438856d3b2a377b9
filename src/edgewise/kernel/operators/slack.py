"""Put events in order by an attribute: `reorder:kslack` and `reorder:akslack`.

K-slack holds an event until the newest time is k later, where k is the largest disorder seen; the
alpha variant shrinks k as far as the values of an attribute still tell of the window they came
from. See Mutschler and Philippsen, "Distributed low-latency out-of-order event processing", and
Ji et al., "Quality-driven processing of sliding window aggregates over out-of-order streams".
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Any

from edgewise.errors import BadEvent
from edgewise.kernel.operators.processors import Processor
from edgewise.kernel.runtime import CURRENT, Chunk, Row, State

NO_TIMEOUT, K_MAX = -1, (1 << 63) - 1
TICK_MS = 1000  # a timeout is looked at once a second
HELD_MAX = 1_000_000  # events that wait; more let the oldest out
_NEW, _HELD, _K, _NEWEST, _SENT, _TICK = 0, 1, 2, 3, 4, 5


class Slack(Processor):
    """State: `[new by time, held by time, k, newest time, last time sent, tick]`.

    The tick is the next one, or minus the last one while the clock rests.
    """

    def fresh(self) -> list[Any]:
        return [{}, {}, 0, 0, -1, 0]

    def process(
        self, state: State, kind: int, ts: int, row: Row, args: tuple[Any, ...], out: Chunk
    ) -> None:
        time, timeout, most, discard = _options(args)
        self.take(state, ts, row, time, (timeout, most, discard), out)

    def take(
        self, state: State, ts: int, row: Row, time: Any, options: tuple[Any, ...], out: Chunk
    ) -> None:
        cells, (timeout, most, discard) = state[self.cell], options
        if time is None:
            raise BadEvent("the attribute that carries the time is null")
        if discard and time < cells[_SENT]:
            return
        self._wait(state, timeout)
        cells[_NEW].setdefault(time, []).append((ts, row))
        self.adapt(cells, time)
        if time > cells[_NEWEST]:
            cells[_NEWEST] = time
            disorder = time - min(cells[_NEW])
            if disorder > cells[_K]:
                cells[_K] = self.slack_of(cells, disorder) if disorder < most else most
            for key, events in cells[_NEW].items():
                cells[_HELD].setdefault(key, []).extend(events)
            cells[_NEW] = {}
            self._let_out(cells, lambda key: key + cells[_K] <= time, out)
        if sum(map(len, cells[_HELD].values())) > HELD_MAX:
            self._let_out(cells, lambda key: key == min(cells[_HELD]), out)

    def adapt(self, cells: list[Any], time: int) -> None:
        """A chance to choose k otherwise."""

    def slack_of(self, cells: list[Any], disorder: int) -> int:
        del cells
        return disorder

    def _let_out(self, cells: list[Any], test: Any, out: Chunk) -> None:
        for key in sorted(cells[_HELD]):
            if not test(key):
                return
            cells[_SENT] = key
            out.extend((CURRENT, ts, row) for ts, row in cells[_HELD].pop(key))

    def start(self, state: State, *args: Any) -> None:
        """Ticks begin a timeout after the app."""
        timeout = self.timeout_of(args)
        if timeout != NO_TIMEOUT:
            state[self.cell][_TICK] = self.rt.now + timeout
            self.rt.arm(state, self.node, self.rt.now + timeout, payload=timeout)

    def timeout_of(self, args: tuple[Any, ...]) -> int:
        return _options(args)[1]

    def _wait(self, state: State, timeout: int) -> None:
        """The next tick of a clock that rests."""
        cells = state[self.cell]
        if timeout == NO_TIMEOUT or cells[_TICK] >= 0:
            return
        last = -cells[_TICK]
        cells[_TICK] = last - (last - self.rt.now) // TICK_MS * TICK_MS
        self.rt.arm(state, self.node, cells[_TICK], payload=timeout)

    def timer(self, state: State, due: int, payload: Any, out: Chunk) -> None:
        cells = state[self.cell]
        for part in self.timed_parts(cells):
            for key in sorted(part):
                if key >= payload + due:
                    break
                out.extend((CURRENT, ts, row) for ts, row in part.pop(key))
        if any(self.timed_parts(cells)):
            cells[_TICK] += TICK_MS
            self.rt.arm(state, self.node, cells[_TICK], payload=payload)
        else:
            cells[_TICK] = -cells[_TICK]

    def timed_parts(self, cells: list[Any]) -> list[dict[int, Any]]:
        return [cells[_HELD]]


def _options(args: tuple[Any, ...]) -> tuple[Any, int, int, bool]:
    """Time, timeout, largest k, whether late events are discarded: by their types."""
    time, *rest = args
    discard = bool(rest.pop()) if rest and isinstance(rest[-1], bool) else False
    timeout = rest[0] if rest else NO_TIMEOUT
    return time, timeout, rest[1] if len(rest) > 1 else K_MAX, discard


_VALUES, _TIMES, _ALPHA, _ERROR, _BEFORE, _LATENCY, _SETTINGS, _COUNT = range(6, 14)
BATCH, ERROR, CONFIDENCE = 10_000, 0.03, 0.95
WINDOW_MS = 10_000_000_000  # of the runtime coverage
GAIN, DAMPING = 0.5, 0.8  # of the controller


class AdaptiveSlack(Slack):
    """State has more cells: values and times, the controller's, its settings, events so far."""

    def fresh(self) -> list[Any]:
        return [*super().fresh(), [], [], 1.0, 0.0, 0.0, 0, (), 0]

    def timeout_of(self, args: tuple[Any, ...]) -> int:
        return int(args[3]) if len(args) > 3 else NO_TIMEOUT

    def process(
        self, state: State, kind: int, ts: int, row: Row, args: tuple[Any, ...], out: Chunk
    ) -> None:
        time, value, *rest = args
        if time is None or value is None:
            raise BadEvent("reorder:akslack: an argument is null")
        defaults = (BATCH, NO_TIMEOUT, K_MAX, False, ERROR, CONFIDENCE)
        settings: list[Any] = [*rest, *defaults[len(rest) :]]
        batch, timeout, most, discard, error, confidence = settings
        cells = state[self.cell]
        cells[_SETTINGS] = (batch, error, confidence)
        cells[_TIMES].append(time)
        cells[_VALUES].append(float(value))
        self.take(state, ts, row, time, (timeout, most, discard), out)

    def adapt(self, cells: list[Any], time: int) -> None:
        batch, error, confidence = cells[_SETTINGS]
        cells[_COUNT] += 1
        if cells[_COUNT] <= batch:
            return
        wanted = coverage_threshold(cells[_VALUES], error, critical_value(confidence))
        latency = cells[_LATENCY]
        seen = runtime_coverage(cells[_TIMES], time, latency) if latency else 1.0
        gap = wanted - seen
        alpha = abs(cells[_BEFORE] + GAIN * gap + DAMPING * (gap - cells[_ERROR]))
        cells[_ALPHA], cells[_BEFORE], cells[_ERROR] = alpha, alpha, gap
        cells[_LATENCY] = min(math.floor(alpha * cells[_K] + 0.5), cells[_K])
        cells[_COUNT], cells[_VALUES] = 0, []

    def slack_of(self, cells: list[Any], disorder: int) -> int:
        alpha: float = cells[_ALPHA]
        return math.floor(disorder * alpha + 0.5)

    def timed_parts(self, cells: list[Any]) -> list[dict[int, Any]]:
        return [cells[_HELD], cells[_NEW]]


def critical_value(confidence: float) -> float:
    """How many deviations from the mean hold this share of a normal distribution."""
    return abs(NormalDist().inv_cdf((1 - confidence) / 2))


def coverage_threshold(values: list[float], error: float, critical: float) -> float:
    """How much of a window must be covered so that its mean is within the error."""
    mean = sum(values) / len(values)
    variance = sum((mean - v) ** 2 for v in values) / len(values)
    if mean == 0:
        return 0.0  # nothing is known of a mean of zero
    spread = critical**2 * (mean**2 + variance**2) / (len(values) * mean**2)
    a = 1 + spread
    roots: list[float] = []
    for b, c in (
        (2 * error - 2 - spread, (1 - error) ** 2),
        (-(2 + 2 * error + spread), (1 + error) ** 2),
    ):
        inside = b**2 - 4 * a * c
        if inside >= 0:
            roots += [(-b - math.sqrt(inside)) / (2 * a), (-b + math.sqrt(inside)) / (2 * a)]
    return min(roots, default=0.0)


def runtime_coverage(times: list[int], now: int, latency: int) -> float:
    """Which share of a window's events was there when it would have been closed."""
    high = now - latency
    low = high - WINDOW_MS
    covered = total = 0
    low_met = high_met = False
    for time in times:
        low_met = low_met or low <= time
        high_met = high_met or high <= time
        if low_met and low <= time <= high:
            covered += not high_met
            total += 1
    times[:] = [time for time in times if time > low]
    return covered / total if total else 1.0
