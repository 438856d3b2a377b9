"""Hold the open session of each key, and one that ended and may still get late events."""

from __future__ import annotations

from typing import Any

from edgewise.kernel.functions.java import map_order
from edgewise.kernel.operators.sliding_windows import WindowOperator
from edgewise.kernel.runtime import CURRENT, EXPIRED, Chunk, Row, Runtime, State

_BY_KEY, _DUES = 0, 1  # cells of the state
# A session: its start, its end, until when late events find it, its events, and behind which of
# them the next late event goes.
_START, _END, _ALIVE, _EVENTS, _MARK = range(5)


class SessionWindow(WindowOperator):
    """Events stay until their key was quiet for `gap` ms, then leave together.

    Each event sets the end anew. `latency` keeps an ended session so long beside the open one for
    late events; where they touch, it joins the open one. What is too late for both is dropped. A
    join finds nothing in here: its rows come when a session leaves.
    State: [key -> [open session, ended one], each may be empty; moment -> keys to look at then].
    """

    def __init__(
        self,
        rt: Runtime,
        node: int,
        cell: int,
        gap: int,
        position: int | None = None,
        latency: int = 0,
    ) -> None:
        super().__init__(rt, node, cell)
        self.gap, self.position, self.latency = gap, position, latency

    def fresh(self) -> list[Any]:
        return []

    def push(self, state: State, ts: int, row: Row, out: Chunk) -> None:
        key = row[self.position] if self.position is not None else ""
        if key is None:
            return  # as in a partition
        cells = state[self.cell]
        if not cells:
            cells += ({}, {})
        pair = cells[_BY_KEY].setdefault(key, [[], []])
        now = pair[0]
        if not now:
            self._open(state, key, pair, ts, row)
        elif ts > now[_END]:
            self._close(state, key, pair, out)
            self._open(state, key, pair, ts, row)
        elif ts >= now[_START]:
            now[_END], now[_ALIVE] = self._times(ts)
            now[_EVENTS].append((ts, row))
            self._arm_check(state, key, now[_END])
        elif not self._late(pair, ts, row):
            return
        out.append((CURRENT, ts, row))

    def _times(self, ts: int) -> tuple[int, int]:
        return ts + self.gap, ts + self.gap + self.latency

    def _arm_check(self, state: State, key: Any, due: int) -> None:
        """At this moment, but not before what waits already: the original's timers queue up."""
        dues = state[self.cell][_DUES]
        if due not in dues:
            self.rt.arm(state, self.node, max(due, *dues) if dues else due, payload=due)
            dues[due] = {}
        dues[due][key] = True

    def _open(self, state: State, key: Any, pair: list[Any], ts: int, row: Row) -> None:
        pair[0] = [ts, *self._times(ts), [(ts, row)], -1]
        self._arm_check(state, key, ts + self.gap)

    def _close(self, state: State, key: Any, pair: list[Any], out: Chunk) -> None:
        """The open session waits for late events, if there is time for that, or leaves."""
        leaving = pair[1] if self.latency else pair[0]
        out.extend((EXPIRED, self.rt.now, row) for _, row in leaving and leaving[_EVENTS])
        pair[1] = pair[0] if self.latency else []
        pair[0] = []
        if self.latency:
            self._arm_check(state, key, pair[1][_ALIVE])

    def _late(self, pair: list[Any], ts: int, row: Row) -> bool:
        """Whether it found a session; each late one goes in front of another event."""
        now, ended = pair
        if ts >= now[_START] - self.gap:
            self._insert(now, [(ts, row)])
            now[_START] = ts
            self._join(pair)
            return True
        if not ended or ts < ended[_START] - self.gap:
            return False
        ended[_EVENTS].append((ts, row))
        if ts < ended[_START] and ts <= ended[_END] - self.gap:
            ended[_START] = ts
        else:
            ended[_END], ended[_ALIVE] = self._times(ts)
            self._join(pair)
        return True

    def _insert(self, session: list[Any], events: list[Any]) -> None:
        held = session[_EVENTS]
        mark = min(session[_MARK] + 1, len(held) - 1)
        held[mark:mark] = events
        session[_MARK] = mark + len(events)

    def _join(self, pair: list[Any]) -> None:
        now, ended = pair
        if ended and ended[_END] >= now[_START] - self.gap:
            self._insert(now, ended[_EVENTS])
            now[_START] = ended[_START]
            pair[1] = []

    def timer(self, state: State, due: int, payload: Any, out: Chunk) -> None:
        """The sessions that are over now leave in one chunk, whichever timer they waited for."""
        cells = state[self.cell]
        if not cells or payload not in cells[_DUES]:
            return
        keys: dict[Any, bool] = {}
        for moment in [m for m in cells[_DUES] if m <= due]:
            keys |= cells[_DUES].pop(moment)
        by_key = cells[_BY_KEY]
        for key in self._over(by_key, keys, 0, _END, due):
            now, ended = by_key[key]
            if self.latency:
                before = ended[_EVENTS] if ended else []
                by_key[key][1] = [*now[:_EVENTS], before + now[_EVENTS], -1]
                self._arm_check(state, key, now[_ALIVE])
            else:
                out.extend((EXPIRED, due, row) for _, row in now[_EVENTS])
            by_key[key][0] = []
        for key in self._over(by_key, keys, 1, _ALIVE, due):
            out.extend((EXPIRED, due, row) for _, row in by_key[key][1][_EVENTS])
            by_key[key][1] = []
        for key in keys:
            if by_key.get(key) == [[], []]:
                del by_key[key]
        if not by_key:
            cells.clear()

    def _over(
        self, by_key: dict[Any, Any], keys: dict[Any, bool], which: int, until: int, due: int
    ) -> list[Any]:
        """Keys whose session is over, by its end and in the order of the original's map."""
        over = [
            key
            for key in map_order(keys)
            if (pair := by_key.get(key)) and pair[which] and pair[which][until] <= due
        ]
        return sorted(over, key=lambda key: by_key[key][which][_END])
