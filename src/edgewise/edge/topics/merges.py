"""Merge updates that wait for a client into one, by laws that are checked. Pure.

A merge is `merge(older, newer) -> both in one` on lifted values. Every merge must be associative:
the server folds in whatever grouping the clients' links dictate. What else holds is declared and
checked on samples at registration; a merge that breaks its word is refused with the values that
show it.

    merge(sum)                  every numeric field; other fields keep the newer value
    merge(sum(n), max(peak))    named fields; other fields keep the newer value
    merge(append(50))           lists, the last 50 items

| op | on | associative | commutative | idempotent | inverse |
|---|---|---|---|---|---|
| sum | numbers | x | x | | x |
| min, max | numbers | x | x | x | |
| last, first | anything | x | | x | |
| union | lists as sets | x | x | x | |
| set | maps, newer keys win | x | | x | |
| append(n) | lists | x | | | |
| stats | numbers, as count, mean, min, max, variance | x | x | | |
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from edgewise.errors import SetupError

APPEND_DEFAULT = 100
SAMPLES_MAX = 8  # triples of them are tried: 512 calls
INTEGERS = range(-(2**63), 2**64)  # what a frame can carry
WINDOW_SHOWS = ("count", "sum", "mean", "min", "max", "stdev", "last")

Op = Callable[[Any, Any], Any]


def _identity(value: Any) -> Any:
    return value


@dataclass(frozen=True, slots=True)
class Merge:
    """`lift` prepares one value, `merge` joins two, `show` is what the client gets; `samples` are
    values to check the laws with. A field that is none of what it `takes` keeps the newer value.
    """

    name: str
    merge: Op
    commutative: bool = False
    idempotent: bool = False
    inverse: Op | None = None  # inverse(merge(a, b), a) == b
    lift: Callable[[Any], Any] = _identity
    show: Callable[[Any], Any] = _identity
    samples: tuple[Any, ...] = ()
    takes: tuple[type, ...] = (object,)


class StatsState(dict[str, Any]):
    """The state of `stats` and of windows; no map off the wire is one."""


def _sum(a: Any, b: Any) -> Any:
    total = a + b
    return total if not isinstance(total, int) or total in INTEGERS else float(total)


def _union(a: list[Any], b: list[Any]) -> list[Any]:
    """Sorted within each type; lists and maps by how they are written."""
    items = {(repr(i),) if isinstance(i, (list, dict)) else i: i for i in (*a, *b)}
    return [items[key] for key in sorted(items, key=lambda k: (type(items[k]).__name__, k))]


def _append(limit: int) -> Op:
    return lambda a, b: [*a, *b][-limit:]


def _lift_stats(x: float) -> StatsState:
    return StatsState(count=1, mean=float(x), m2=0.0, min=x, max=x, sum=x, last=x)


def _merge_stats(a: StatsState, b: StatsState) -> StatsState:
    """Chan's parallel update of mean and variance."""
    count = a["count"] + b["count"]
    shift = b["mean"] - a["mean"]
    return StatsState(
        count=count,
        mean=a["mean"] + shift * b["count"] / count,
        m2=a["m2"] + b["m2"] + shift * shift * a["count"] * b["count"] / count,
        min=min(a["min"], b["min"]),
        max=max(a["max"], b["max"]),
        sum=_sum(a["sum"], b["sum"]),
        last=b["last"],
    )


def _show_stats(names: Iterable[str]) -> Callable[[Any], Any]:
    wanted = tuple(names)

    def show(state: StatsState) -> dict[str, Any]:
        spread = state["m2"] / (state["count"] - 1) if state["count"] > 1 else 0.0
        return {n: math.sqrt(spread) if n == "stdev" else state[n] for n in wanted}

    return show


_NUMBER, _ORDERED = (int, float), (int, float, str)
STOCK: dict[str, Merge] = {
    m.name: m
    for m in (
        Merge("sum", _sum, commutative=True, inverse=lambda ab, a: ab - a, takes=_NUMBER),
        Merge("min", min, commutative=True, idempotent=True, takes=_ORDERED),
        Merge("max", max, commutative=True, idempotent=True, takes=_ORDERED),
        Merge("last", lambda _a, b: b, idempotent=True),
        Merge("first", lambda a, _b: a, idempotent=True),
        Merge("union", _union, commutative=True, idempotent=True, takes=(list,)),
        Merge("set", lambda a, b: {**a, **b}, idempotent=True, takes=(dict,)),
        Merge("append", _append(APPEND_DEFAULT), takes=(list,)),
        Merge(
            "stats",
            _merge_stats,
            lift=_lift_stats,
            show=_show_stats(WINDOW_SHOWS),
            takes=(*_NUMBER, StatsState),
        ),
    )
}


class MergeRegistry:
    """The merges an edge knows: the stock ones and those registered with it."""

    def __init__(self) -> None:
        self._known = dict(STOCK)
        self._parsed: dict[str, Merge] = {}

    def register(self, merge: Merge, samples: Iterable[Any] = ()) -> None:
        """Refuses a merge whose declared laws fail on the samples, these and its own."""
        if not re.fullmatch(r"[a-z]\w*", merge.name):
            raise SetupError(f"'{merge.name}' is no name for a merge: use letters and digits")
        if merge.name in STOCK:
            raise SetupError(f"merge '{merge.name}' is a stock merge; choose another name")
        every = itertools.chain(merge.samples, samples)
        check_laws(merge, tuple(itertools.islice(every, SAMPLES_MAX)))
        self._known[merge.name] = merge

    def parse(self, conflate: str) -> Merge | None:
        """The merge that a topic's `conflate` names; None for 'replace' and 'off'."""
        if conflate in {"replace", "off"}:
            return None
        if conflate not in self._parsed:
            self._parsed[conflate] = self._parse(conflate)
        return self._parsed[conflate]

    def validate_recovery(self, conflate: str, recovery: str) -> None:
        """Refuse a merge where its laws do not allow it."""
        merge = self.parse(conflate)
        if merge is not None and recovery == "rollback" and not merge.idempotent:
            raise SetupError(
                f"conflate='{conflate}' with recovery='rollback': after a failure updates may "
                f"come twice, and {merge.name} is not idempotent; use recovery='precise' or 'gap'"
            )

    def _parse(self, conflate: str) -> Merge:
        found = re.fullmatch(r"merge\(\s*(.+?)\s*\)", conflate)
        if found is None:
            raise SetupError(f"conflate='{conflate}': use 'replace', 'off' or 'merge(op)'")
        parts = [p.strip() for p in re.split(r",(?![^(]*\))", found[1])]
        fields: dict[str, Merge] = {}
        for part in parts:
            name, _, argument = part.removesuffix(")").partition("(")
            if argument and not argument.isdigit():
                fields[argument.strip()] = self._named(name, "")
            elif len(parts) == 1:
                return merge_by_field(conflate, {}, self._named(name, argument))
            else:
                raise SetupError(
                    f"conflate='{conflate}': '{part}' must name a field, as in sum(n)"
                )
        return merge_by_field(conflate, fields, None)

    def _named(self, name: str, argument: str) -> Merge:
        if name == "append" and argument:
            return Merge("append", _append(max(1, int(argument))), takes=(list,))
        if name not in self._known:
            raise SetupError(f"no merge '{name}'; there are {', '.join(sorted(self._known))}")
        return self._known[name]


class _Fields:
    """Each field of a record by its own op, the rest by `others` or the newer wins."""

    def __init__(self, named: Mapping[str, Merge], others: Merge | None) -> None:
        self.named = named
        self.others = others

    def op_of(self, field: str, value: Any) -> Merge | None:
        op = self.named.get(field)
        if op is None:
            op = self.others
            # A tuple is the state of an aggregate: no value off the wire is one.
            if not isinstance(value, (int, float, list, dict, tuple)) or isinstance(value, bool):
                return None
        return op if op is not None and value is not None and isinstance(value, op.takes) else None

    def lift(self, record: Any) -> Any:
        if not isinstance(record, dict):
            return record
        return {k: op.lift(v) if (op := self.op_of(k, v)) else v for k, v in record.items()}

    def merge(self, older: Any, newer: Any) -> Any:
        if not isinstance(older, dict) or not isinstance(newer, dict):
            return newer
        out = dict(older)
        for field, value in newer.items():
            before = older.get(field)
            if value is None and self.op_of(field, before) is not None:
                continue  # a missing value adds nothing
            op = self.op_of(field, value)
            known = before is not None and type(before) is type(value)
            mixed = isinstance(before, (int, float)) and isinstance(value, (int, float))
            out[field] = op.merge(before, value) if op and (known or mixed) else value
        return out

    def show(self, record: Any) -> Any:
        if not isinstance(record, dict):
            return record
        return {k: op.show(v) if (op := self.op_of(k, v)) else v for k, v in record.items()}


def merge_by_field(name: str, named: Mapping[str, Merge], others: Merge | None) -> Merge:
    """A merge of records."""
    ops = [*named.values(), *([others] if others else [])]
    fields = _Fields(named, others)
    return Merge(
        name,
        fields.merge,
        idempotent=all(op.idempotent for op in ops),
        lift=fields.lift if any(op.lift is not _identity for op in ops) else _identity,
        show=fields.show if any(op.show is not _identity for op in ops) else _identity,
    )


def window_merge(names: Iterable[str]) -> Merge:
    """A client's own aggregate: numbers as the named statistics since its last update."""
    wanted = tuple(dict.fromkeys(names))
    unknown = [n for n in wanted if n not in WINDOW_SHOWS]
    if unknown or not wanted:
        raise SetupError(f"no aggregate '{', '.join(unknown)}'; use {', '.join(WINDOW_SHOWS)}")
    base = STOCK["stats"]
    stats = Merge("stats", base.merge, lift=base.lift, show=_show_stats(wanted))

    def lift(record: Any) -> Any:
        if not isinstance(record, dict):
            return record
        return {k: stats.lift(v) if _is_number(v) else v for k, v in record.items()}

    def merge(older: Any, newer: Any) -> Any:
        if not isinstance(older, dict) or not isinstance(newer, dict):
            return newer
        both = {
            k: stats.merge(before, v)
            for k, v in newer.items()
            if isinstance(v, StatsState) and isinstance(before := older.get(k), StatsState)
        }
        return {**older, **newer, **both}

    def show(record: Any) -> Any:
        if not isinstance(record, dict):
            return record
        return {k: stats.show(v) if isinstance(v, StatsState) else v for k, v in record.items()}

    return Merge(f"window({','.join(wanted)})", merge, lift=lift, show=show)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def check_laws(merge: Merge, samples: tuple[Any, ...]) -> None:
    """Associative always; commutative, idempotent and inverse where declared."""
    if len(samples) < 2:
        raise SetupError(f"merge '{merge.name}': give at least two samples to check it with")
    lifted = [merge.lift(s) for s in samples]
    for a, b, c in itertools.product(lifted, repeat=3):
        left, right = merge.merge(merge.merge(a, b), c), merge.merge(a, merge.merge(b, c))
        _demand_law(merge, "associative", equal(left, right), (a, b, c))
    for a, b in itertools.product(lifted, repeat=2):
        both = merge.merge(a, b)
        if merge.commutative:
            _demand_law(merge, "commutative", equal(both, merge.merge(b, a)), (a, b))
        if merge.idempotent:
            _demand_law(merge, "idempotent", equal(merge.merge(both, b), both), (a, b))
        if merge.inverse is not None:
            _demand_law(merge, "invertible", equal(merge.inverse(both, a), b), (a, b))
    for a in lifted if merge.idempotent else ():
        _demand_law(merge, "idempotent", equal(merge.merge(a, a), a), (a,))


def equal(a: Any, b: Any) -> bool:
    """Equality that forgives rounding of floats, at any depth."""
    if isinstance(a, float) or isinstance(b, float):
        return math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-9)
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(equal(v, b[k]) for k, v in a.items())
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(map(equal, a, b))
    return bool(a == b)


def _demand_law(merge: Merge, law: str, holds: bool, show: tuple[Any, ...]) -> None:
    if not holds:
        values = ", ".join(repr(v) for v in show)
        raise SetupError(f"merge '{merge.name}' is not {law}: {values} shows it")
