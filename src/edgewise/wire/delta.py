"""Compute and apply the difference between two values of a topic.

    record   [set, removed]           set: changed fields; removed: names (left out when empty)
    table    [rows, removed, patched] rows: whole rows by key; patched: record differences by key
    series   [entries]                entries to append; the oldest beyond `keep` fall off
    blob     none: a blob is always sent whole

`diff` answers None where only the whole value will do.
"""

from __future__ import annotations

from typing import Any

from edgewise.wire.frames import TopicKind

_MISSING = object()


def diff(kind: TopicKind, old: Any, new: Any) -> list[Any] | None:
    if kind is TopicKind.RECORD:
        return _diff_record(old, new)
    if kind is TopicKind.TABLE:
        return _diff_table(old, new)
    if kind is TopicKind.SERIES:
        return _diff_series(old, new)
    return None


def apply(kind: TopicKind, old: Any, delta: list[Any], keep: int = 0) -> Any:
    """A new value; `old` stays as it was."""
    if kind is TopicKind.RECORD:
        return _apply_record(old, delta)
    if kind is TopicKind.TABLE:
        return _apply_table(old, delta)
    if kind is TopicKind.SERIES:
        series = [*old, *delta[0]]
        return series[-keep:] if keep else series
    raise ValueError(f"a {kind.name.lower()} topic has no deltas")


def _same(a: Any, b: Any) -> bool:
    # 1 == 1.0 == True in Python, but they are different bytes for the client.
    return type(a) is type(b) and bool(a == b)


def _diff_record(old: dict[str, Any], new: dict[str, Any]) -> list[Any]:
    changed = {k: v for k, v in new.items() if not _same(old.get(k, _MISSING), v)}
    removed = [k for k in old if k not in new]
    return [changed, removed] if removed else [changed]


def _apply_record(old: dict[str, Any], delta: list[Any]) -> dict[str, Any]:
    value = {**old, **delta[0]}
    for name in delta[1] if len(delta) > 1 else ():
        value.pop(name, None)
    return value


def _diff_table(old: dict[str, Any], new: dict[str, Any]) -> list[Any]:
    rows: dict[str, Any] = {}
    patched: dict[str, Any] = {}
    for key, row in new.items():
        before = old.get(key)
        if before is None:
            rows[key] = row
        elif before is not row:
            patch = _diff_record(before, row)
            if patch != [{}]:
                patched[key] = patch
    removed = [k for k in old if k not in new]
    if patched:
        return [rows, removed, patched]
    return [rows, removed] if removed else [rows]


def _apply_table(old: dict[str, Any], delta: list[Any]) -> dict[str, Any]:
    table = {**old, **delta[0]}
    for key in delta[1] if len(delta) > 1 else ():
        table.pop(key, None)
    for key, patch in delta[2].items() if len(delta) > 2 else ():
        table[key] = _apply_record(table.get(key, {}), patch)
    return table


def _diff_series(old: list[Any], new: list[Any]) -> list[Any] | None:
    if not old:
        return [new]
    last = old[-1][0]
    fresh = [entry for entry in new if entry[0] > last]
    # Entries between the two fell off before the client saw them: send the whole.
    if len(fresh) == len(new) and new and new[0][0] != last + 1:
        return None
    return [fresh]
