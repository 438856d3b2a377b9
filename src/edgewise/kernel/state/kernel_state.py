"""Save the state of a kernel as entries `(key, bytes)` for a store, and restore it.

By key: each key the fragment has is an entry, and only those touched since the last call are
given. Where one query holds its state by the fragment's own key (`by_key`, a cell), its keys are
given the same way. Without a key there is one state; of its long lists those pieces are given that
changed (`pieces`). What windows hold is given by parts, what came and what left (`queue_parts`).
Events that wait to be put in order are an entry of their own.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from operator import itemgetter
from typing import Any

from edgewise.kernel import serialize
from edgewise.kernel.api import KernelStats
from edgewise.kernel.codegen.state_owners import StateLayout
from edgewise.kernel.operators.reorder import HELD, ReorderBuffer
from edgewise.kernel.runtime import FIRST_CELL, Runtime, State
from edgewise.kernel.state.layout_transfer import carry_state
from edgewise.kernel.state.pieces import Entries, Pieces
from edgewise.kernel.state.queue_parts import LaterEntries, QueueParts, forget_stored, join_parts
from edgewise.plan.nodes import App

States = Iterable[tuple[bytes, bytes]]


class KernelState:
    """What a kernel holds, seen from a store. `order` is what waits to be put in order."""

    def __init__(
        self,
        app: App,
        rt: Runtime,
        stats: KernelStats,
        layout: StateLayout,
        plan_id: bytes,
        by_key: int | None,
    ) -> None:
        self.order = (
            None if app.lateness_ms is None else ReorderBuffer(app, stats, rt.record_failure)
        )
        self._app, self._rt, self._stats = app, rt, stats
        self._layout, self._plan_id, self._by_key = layout, plan_id, by_key
        self._pieces, self._parts = Pieces(), QueueParts()

    def changed(self) -> LaterEntries:
        """What became different; some of it is encoded when it is asked for."""
        rt = self._rt
        if self._by_key is not None:
            return [*self._changed_in_cell()]
        if not rt.keyed:
            return self._changed_whole()
        touched, out = list(rt.dirty), LaterEntries()
        rt.dirty.clear()
        for key in touched:
            state = rt.keys.get(key)
            if state is None:
                continue
            if self._is_empty(state):
                del rt.keys[key]
                out += self._parts.drop(serialize.pack_key(key))
            else:
                out += self._parts.pack(self._plan_id, serialize.pack_key(key), [None, *state])
        if self.order is not None:
            held = serialize.pack(self._plan_id, self.order.state())
            out.append((serialize.pack_key(HELD), held))
        self._stats.keys = len(rt.keys)
        return out

    def _changed_whole(self) -> LaterEntries:
        """Of a state without a key: new pieces of its lists, new parts of its queues."""
        rt, parts = self._rt, LaterEntries()
        states: list[tuple[Any, Any]] = []
        for key, state in rt.keys.items():
            found, plain = self._parts.cut(serialize.pack_key(key), [rt.now, *state])
            states.append((key, plain))
            parts += found
        if self.order is not None:
            states.append((HELD, serialize.plain(self.order.state())))
        self._stats.keys = len(rt.keys)
        return [*self._pieces.changed(self._plan_id, states), *parts]

    def _is_empty(self, state: State) -> bool:
        if state[0]:
            return False
        idle = self._rt.idle
        pairs = zip(state[FIRST_CELL:], self._rt.fresh(), strict=True)
        return all(
            idle[i](cell) if i in idle else cell == fresh
            for i, (cell, fresh) in enumerate(pairs, FIRST_CELL)
        )

    def restore(self, states: States) -> None:
        """Into a fresh kernel."""
        rt, entries = self._rt, dict(states)
        rt.heap.clear()
        rt.keys.clear()
        self._pieces.stored(entries)
        if self._by_key is not None:
            self._restore_cell(entries.items(), self._plan_id)
            return
        for key_bytes, data in join_parts(entries.items()).items():
            key = serialize.unpack_key(key_bytes)
            if key == HELD:
                self._hold(serialize.unpack(self._plan_id, data))
                continue
            clock, *state = serialize.unpack(self._plan_id, data)
            self._parts.remember(key_bytes, state)
            if clock is not None:
                rt.now = max(rt.now, clock)
            rt.keys[key] = rt.root = state
            rt.restored(state)
        self._stats.keys = len(rt.keys)

    def _hold(self, waiting: list[Any]) -> None:
        """What waits goes on waiting; where nothing is late any more, until time next moves."""
        if self.order is None:
            self.order = ReorderBuffer(self._app, self._stats, self._rt.record_failure)
        self.order.restore(waiting)

    def carry(self, old: StateLayout, states: States, clock: int) -> None:
        """From another plan's kernel, see `Kernel.carry`."""
        rt, new = self._rt, self._layout
        rt.now = max(rt.now, clock - (self.order.lag_ms if self.order is not None else 0))
        if old.alike(new) and set(old.names) & set(new.names):
            self._carry(old, states)
        if not rt.keyed and () not in rt.keys:
            rt.state(())

    def _carry(self, old: StateLayout, states: States) -> None:
        rt, new = self._rt, self._layout
        if self._by_key is not None:
            if old.cells == new.cells:
                self._restore_cell(states, None)
                rt.dirty.update(self._cell()[0])
            return
        for key_bytes, data in join_parts(states).items():
            key = serialize.unpack_key(key_bytes)
            if key == HELD:
                self._hold(serialize.unpack(None, data))
                continue
            then, *state = serialize.unpack(None, data)
            forget_stored(state)
            rt.now = max(rt.now, then or 0)
            carry_state(rt, old, state, new, key)
            if rt.keyed:
                rt.dirty.add(key)
        self._stats.keys = len(rt.keys)

    # State by the fragment's own key, in a cell.

    def _cell(self) -> tuple[dict[Any, Any], deque[Any] | None]:
        """What is held by key, and for a chain the order in which it grows old."""
        assert self._by_key is not None
        kept = self._rt.state(())[self._by_key]
        held, order = kept if isinstance(kept, list) else (kept, None)
        return held, order

    def _changed_in_cell(self) -> Entries:
        held, _ = self._cell()
        touched, plan_id = self._rt.dirty, self._plan_id
        out = [
            (
                serialize.pack_key((key,)),
                serialize.pack(plan_id, held[key]) if key in held else None,
            )
            for key in touched
        ]
        touched.clear()
        self._stats.keys = len(held)
        return out

    def _restore_cell(self, states: States, plan_id: bytes | None) -> None:
        held, order = self._cell()
        for key_bytes, data in states:
            [key] = serialize.unpack_key(key_bytes)
            held[key] = serialize.unpack(plan_id, data)
        if order is not None:
            waiting = [(one[0], key) for key, ones in held.items() for one in _matches(ones)]
            order.extend(sorted(waiting, key=itemgetter(0)))
        self._stats.keys = len(held)


def _matches(waits: list[Any]) -> Iterator[tuple[Any, ...]]:
    """Of a key: a list of matches, or one for each element that some wait for."""
    for one in waits:
        if isinstance(one, list):
            yield from one
        else:
            yield one
