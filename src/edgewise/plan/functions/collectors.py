"""Define the aggregates that collect values: lists, maps, texts, JSON, and percentiles of numbers.

Each has the four verbs of an aggregate over a state that is replaced, never changed; several
arguments come as one tuple. What leaves is taken out as the original does it: `list:collect` takes
out the first equal value, `list:merge` and `map:merge` every equal one. Declared in `aggregates`.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import Any

from edgewise.errors import BadEvent
from edgewise.plan.functions import json_text
from edgewise.plan.functions.java_maps import has, is_same, ordered
from edgewise.plan.functions.java_text import to_units


class Collector:
    """What they share: values with nulls in them are taken, unless one says otherwise."""

    invertible = True
    takes_null = True

    def init(self) -> Any:
        return ()

    def accumulate(self, state: Any, value: Any) -> Any:
        raise NotImplementedError

    def compensate(self, state: Any, value: Any) -> Any:
        raise NotImplementedError

    def merge(self, earlier: Any, later: Any) -> Any:
        return (*earlier, *later)

    def emit(self, state: Any) -> Any:
        raise NotImplementedError


def _split(value: Any) -> tuple[Any, bool]:
    """The value and whether only distinct ones are wanted."""
    return (value[0], bool(value[1])) if isinstance(value, tuple) else (value, False)


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise BadEvent(f"list:merge takes lists, not {value!r}")
    return value


def _map(value: Any) -> dict[Any, Any]:
    if not isinstance(value, dict):
        raise BadEvent(f"map:merge takes maps, not {value!r}")
    return value


class CollectList(Collector):
    def accumulate(self, state: Any, value: Any) -> Any:
        item, distinct = _split(value)
        return state if distinct and has(state, item) else (*state, item)

    def compensate(self, state: Any, value: Any) -> Any:
        item, _ = _split(value)
        at = next((i for i, held in enumerate(state) if is_same(held, item)), None)
        return state if at is None else state[:at] + state[at + 1 :]

    def emit(self, state: Any) -> list[Any]:
        return list(state)


class MergeLists(CollectList):
    def accumulate(self, state: Any, value: Any) -> Any:
        items, distinct = _split(value)
        for item in _list(items):
            state = super().accumulate(state, (item, distinct))
        return state

    def compensate(self, state: Any, value: Any) -> Any:
        items, _ = _split(value)
        gone = _list(items)
        return tuple(held for held in state if not has(gone, held))


class CollectMap(Collector):
    """The state is a dict, never changed; a key that leaves takes its newest value along."""

    def init(self) -> dict[Any, Any]:
        return {}

    def accumulate(self, state: Any, value: Any) -> Any:
        return {**state, value[0]: value[1]}

    def compensate(self, state: Any, value: Any) -> Any:
        return {key: held for key, held in state.items() if key != value[0]}

    def merge(self, earlier: Any, later: Any) -> Any:
        return {**earlier, **later}

    def emit(self, state: Any) -> dict[Any, Any]:
        return ordered(state)


class MergeMaps(CollectMap):
    def accumulate(self, state: Any, value: Any) -> Any:
        return {**state, **_map(value)}

    def compensate(self, state: Any, value: Any) -> Any:
        gone = _map(value)
        return {key: held for key, held in state.items() if key not in gone}


class Counted(Collector):
    """Keys in the order they first came, each with how often; and the last options given.

    The state is `(options, ((key, count), ...))`.
    """

    def init(self) -> Any:
        return (), ()

    def key_of(self, value: Any) -> tuple[str | None, tuple[Any, ...]]:
        """The key, None where there is none, and the options."""
        raise NotImplementedError

    def accumulate(self, state: Any, value: Any) -> Any:
        key, options = self.key_of(value)
        return options, state[1] if key is None else _count(state[1], key, 1)

    def compensate(self, state: Any, value: Any) -> Any:
        key, options = self.key_of(value)
        return options, state[1] if key is None else _count(state[1], key, -1)

    def merge(self, earlier: Any, later: Any) -> Any:
        counts = earlier[1]
        for key, n in later[1]:
            counts = _count(counts, key, n)
        return later[0] or earlier[0], counts


def _count(
    counts: tuple[tuple[str, int], ...], key: str, step: int
) -> tuple[tuple[str, int], ...]:
    for at, (held, n) in enumerate(counts):
        if held == key:
            changed = ((key, n + step),) if n + step > 0 else ()
            return (*counts[:at], *changed, *counts[at + 1 :])
    return (*counts, (key, step)) if step > 0 else counts


class GroupConcat(Counted):
    """Texts between separators: equal ones stand together, or only once; sorted if asked."""

    def key_of(self, value: Any) -> tuple[str | None, tuple[Any, ...]]:
        if not isinstance(value, tuple):
            return value, (",",)
        return "null" if value[0] is None else str(value[0]), value[1:]

    def emit(self, state: Any) -> str:
        options, counts = state
        chosen: list[Any] = [*options, *(",", False, "")[len(options) :]]
        separator, distinct, order = chosen
        if order:
            down = str(order).upper() == "DESC"
            counts = sorted(counts, key=lambda held: to_units(held[0]), reverse=down)
        texts = [text for text, n in counts for _ in range(1 if distinct else n)]
        return ("null" if separator is None else str(separator)).join(texts)


class GroupJson(Counted):
    """JSON objects as one array, in an enclosing object if one is named; as text."""

    def key_of(self, value: Any) -> tuple[str | None, tuple[Any, ...]]:
        given: tuple[Any, ...] = value if isinstance(value, tuple) else (value,)
        source, options = given[0], given[1:]
        if isinstance(source, str):
            source = json_text.parse_strict(source)
        if source is not None and not isinstance(source, dict):
            raise BadEvent(f"a JSON object is needed here, not {source!r}")
        return json_text.write(source), options

    def found(self, state: Any) -> Any:
        options, counts = state
        distinct = any(option is True for option in options)
        name = next((option for option in options if isinstance(option, str)), None)
        items = [
            json_text.parse(text, hashed=True)
            for text, n in counts
            for _ in range(1 if distinct else n)
        ]
        return items if name is None else {name: items}

    def emit(self, state: Any) -> Any:
        return json_text.write_plain(self.found(state))


class GroupJsonObjects(GroupJson):
    def emit(self, state: Any) -> Any:
        return self.found(state)


class Median(Collector):
    """The state is a sorted tuple."""

    takes_null = False

    def accumulate(self, state: Any, value: Any) -> Any:
        held = list(state)
        insort(held, value)
        return tuple(held)

    def compensate(self, state: Any, value: Any) -> Any:
        at = bisect_left(state, value)
        return state[:at] + state[at + 1 :] if state[at : at + 1] == (value,) else state

    def merge(self, earlier: Any, later: Any) -> Any:
        return tuple(sorted((*earlier, *later)))

    def emit(self, state: Any) -> float | None:
        if not state:
            return None
        middle = len(state) // 2
        if len(state) % 2:
            return float(state[middle])
        return float(state[middle - 1] + state[middle]) / 2


class Percentile(Collector):
    """The state is `(percentile, sorted values)`; nearest rank, halfway between two where even."""

    takes_null = False

    def init(self) -> Any:
        return 0.0, ()

    def accumulate(self, state: Any, value: Any) -> Any:
        number, percentile = value
        held = list(state[1])
        insort(held, float(number))
        return percentile, tuple(held)

    def compensate(self, state: Any, value: Any) -> Any:
        held, number = state[1], float(value[0])
        at = bisect_left(held, number)
        same = held[at : at + 1] == (number,)
        return value[1], held[:at] + held[at + 1 :] if same else held

    def merge(self, earlier: Any, later: Any) -> Any:
        return later[0] or earlier[0], tuple(sorted((*earlier[1], *later[1])))

    def emit(self, state: Any) -> float | None:
        percentile, held = state
        if not held:
            return None
        rank = percentile * len(held) / 100
        if rank == int(rank):
            at = int(rank)
            return float(held[at - 1] if at == len(held) else (held[at - 1] + held[at]) / 2)
        return float(held[max(int(rank + 0.5) - 1, 0)])
