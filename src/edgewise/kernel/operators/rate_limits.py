"""Limit the output rate of a query: how many of its rows go on, and when.

By events they count rows; by time they tick from the start of the app (or the key), except
`first`, which holds for its time from each emission. With `group by` each group is limited on its
own. Rows come as (kind, ts, data) or, where groups matter, (kind, ts, data, group).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from edgewise.kernel.runtime import CURRENT, EXPIRED, Runtime, State

Rows = list[Any]
Send = Callable[[State, Rows], None]


class RateLimiter:
    """`size` is a number of events or of milliseconds."""

    ticks = False

    def __init__(
        self, rt: Runtime, node: int, cell: int, send: Send, size: int, *, grouped: bool,
        windowed: bool = False, aggregates: tuple[int, ...] = (),
    ) -> None:  # fmt: skip
        self.rt, self.node, self.cell, self.send = rt, node, cell, send
        self.size, self.grouped = size, grouped
        self.windowed, self.aggregates = windowed, aggregates

    def fresh(self) -> Any:
        return []

    def created(self, state: State) -> None:
        if self.ticks:
            self.rt.arm(state, self.node, self.rt.now + self.size)

    def push(self, state: State, rows: Rows) -> None:
        raise NotImplementedError

    def timer(self, state: State, due: int, payload: Any) -> None:
        rows = self.tick(state, due)
        if self.rests(state):
            state[self.cell] = self.rt.asleep(due + self.size)
        else:
            self.rt.again(state, due + self.size)
        if rows:
            self.send(state, rows)

    def tick(self, state: State, due: int) -> Rows:
        return []

    def rests(self, state: State) -> bool:
        """Whether the next tick would send nothing: its cell is then what is kept of its timer."""
        return True

    def awake(self, state: State) -> Any:
        """Its cell, whose timer runs."""
        if isinstance(asleep := state[self.cell], tuple):
            state[self.cell] = self.fresh()
            self.rt.wake(state, self.node, self.size, asleep)
        return state[self.cell]

    def group(self, row: Any) -> Any:
        return row[3] if self.grouped else None


class AllEvents(RateLimiter):
    def push(self, state: State, rows: Rows) -> None:
        held = state[self.cell]
        for row in rows:
            held.append(row)
            if len(held) == self.size:
                full, held[:] = list(held), []
                self.send(state, full)


class FirstEvents(RateLimiter):
    """The first of each n."""

    def fresh(self) -> dict[Any, int]:
        return {}

    def push(self, state: State, rows: Rows) -> None:
        counts, out = state[self.cell], []
        for row in rows:
            group = self.group(row)
            n = counts.get(group, 0) + 1
            if n == 1:
                out.append(row)
            if n >= self.size:
                counts.pop(group, None)
            else:
                counts[group] = n
        if out:
            self.send(state, out)


class LastEvents(RateLimiter):
    """Of each n the last one, or the last of each group, in order of their first appearance."""

    def push(self, state: State, rows: Rows) -> None:
        held = state[self.cell]
        if not held:
            held += (0, {})
        for row in rows:
            held[0] += 1
            held[1][self.group(row)] = row
            if held[0] == self.size:
                out = list(held[1].values())
                held[0], held[1] = 0, {}
                self.send(state, out)


class AllTime(RateLimiter):
    ticks = True

    def push(self, state: State, rows: Rows) -> None:
        self.awake(state).extend(rows)

    def tick(self, state: State, due: int) -> Rows:
        rows, state[self.cell] = state[self.cell], []
        return rows  # type: ignore[no-any-return]


class FirstTime(RateLimiter):
    """One, then none for `size` ms."""

    def fresh(self) -> dict[Any, int]:
        return {}

    def push(self, state: State, rows: Rows) -> None:
        since, out = state[self.cell], []
        for row in rows:
            group = self.group(row)
            last = since.get(group)
            if last is None or last + self.size <= self.rt.now:
                since[group] = self.rt.now
                out.append(row)
        if out:
            self.send(state, out)


class LastTime(RateLimiter):
    ticks = True

    def fresh(self) -> dict[Any, Any]:
        return {}

    def push(self, state: State, rows: Rows) -> None:
        held = self.awake(state)
        for row in rows:
            held[self.group(row)] = row

    def tick(self, state: State, due: int) -> Rows:
        rows = list(state[self.cell].values())
        state[self.cell].clear()
        return rows


class Snapshot(RateLimiter):
    """The current set every `size` ms, whether or not it changed.

    Behind a window that is what is inside: each row, with the newest aggregates; with `group by`
    and aggregates one row of each group, its oldest. Without a window it is the last row, or the
    last of each group. State: [rows inside, last row by group].
    """

    ticks = True

    def fresh(self) -> list[Any]:
        return [[], {}]

    def push(self, state: State, rows: Rows) -> None:
        inside, last = self.awake(state)
        for row in rows:
            group = self.group(row)
            if row[0] == CURRENT:
                inside.append(row)
            elif row[0] == EXPIRED and self.windowed:
                self._leave(inside, row)
            last[group] = row
        if not self.windowed:
            inside.clear()

    def rests(self, state: State) -> bool:
        return bool(state[self.cell] == self.fresh())

    def _leave(self, inside: Rows, row: Any) -> None:
        for i, held in enumerate(inside):
            if self._plain(held[2]) == self._plain(row[2]) and self.group(held) == self.group(row):
                del inside[i]
                return

    def _plain(self, data: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(v for i, v in enumerate(data) if i not in self.aggregates)

    def tick(self, state: State, due: int) -> Rows:
        inside, last = state[self.cell]
        if not self.windowed:
            return [(CURRENT, due, row[2]) for row in last.values() if row[0] == CURRENT]
        groups = {self.group(row) for row in inside}
        for group in [g for g in last if g not in groups]:
            del last[group]
        if not inside:
            return []
        if len(self.aggregates) == len(inside[0][2]):
            # ungrouped, nothing is shown from an expiry to the next arrival, as in the original
            return [(CURRENT, due, r[2]) for r in last.values() if self.grouped or r[0] == CURRENT]
        shown = inside
        if self.grouped and self.aggregates:
            oldest: dict[Any, Any] = {}
            for row in inside:
                oldest.setdefault(self.group(row), row)
            shown = list(oldest.values())
        return [(CURRENT, due, self._newest(row, last)) for row in shown]

    def _newest(self, row: Any, last: dict[Any, Any]) -> tuple[Any, ...]:
        newest = last[self.group(row)][2]
        return tuple(newest[i] if i in self.aggregates else v for i, v in enumerate(row[2]))


LIMITS: dict[str, type[RateLimiter]] = {
    "all_events": AllEvents,
    "first_events": FirstEvents,
    "last_events": LastEvents,
    "all_time": AllTime,
    "first_time": FirstTime,
    "last_time": LastTime,
    "snapshot_time": Snapshot,
}
