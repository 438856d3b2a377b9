"""Show what the apps of a data directory hold in state (`edgewise state`), as a table or JSON."""

from __future__ import annotations

import dataclasses
import datetime as dt
import json
from collections.abc import Iterator
from pathlib import Path

from edgewise.engines.state.inspect_state import StateReport, inspect_state
from edgewise.engines.state.storage import LocalStorage, Storage, open_storage
from edgewise.errors import SetupError

TITLES = (
    "fragment",
    "partition",
    "versions",
    "files",
    "on disk",
    "keys",
    "state",
    "waits since",
    "due",
)


def find_state(location: str) -> dict[str, Storage]:
    """State by app: of a data directory, a checkpoint, or a location given with `--state`."""
    if "://" in location:
        storage = open_storage(location)
        return {str(storage): storage}
    path = Path(location)
    if (path / "state").is_dir():
        return {path.name: LocalStorage(path / "state")}
    below = sorted((path / "checkpoint").glob("*/state"))
    if below:
        return {p.parent.name: LocalStorage(p) for p in below}
    raise SetupError(f"{location} is no data directory and no checkpoint: there is no state in it")


def describe_state(location: str, *, as_json: bool = False, largest: int = 0) -> Iterator[str]:
    for app, storage in find_state(location).items():
        reports = list(inspect_state(storage, largest))
        if as_json:
            yield from (
                json.dumps({"app": app} | dataclasses.asdict(report)) for report in reports
            )
        else:
            yield from _format_table(app, reports)


def _format_table(app: str, reports: list[StateReport]) -> Iterator[str]:
    keys, held = sum(p.keys for p in reports), sum(p.state_bytes for p in reports)
    disk = sum(p.disk_bytes for p in reports)
    yield f"app {app}: {keys} keys, {_format_size(held)} of state, {_format_size(disk)} on disk"
    rows = [TITLES, *(_format_row(report) for report in reports)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(TITLES))]
    for row in rows if reports else ():
        yield "  " + "  ".join(t.ljust(w) for t, w in zip(row, widths, strict=True)).rstrip()
    for report in reports:
        for key in report.largest:
            size = _format_size(key.bytes)
            yield f"  {report.fragment} {report.partition}: {key.key} holds {size}"


def _format_row(report: StateReport) -> tuple[str, ...]:
    return (
        report.fragment,
        str(report.partition),
        f"{report.oldest_version}-{report.version}",
        str(report.files),
        _format_size(report.disk_bytes),
        str(report.keys),
        _format_size(report.state_bytes),
        "-" if report.waits_since is None else f"offset {report.waits_since}",
        "-" if report.due is None else _format_time(report.due),
    )


def _format_time(ms: int) -> str:
    at = dt.datetime.fromtimestamp(ms / 1000, dt.UTC)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _format_size(count: int) -> str:
    amount, units = float(count), ["B", "kB", "MB", "GB", "TB"]
    while amount >= 1000 and len(units) > 1:
        amount /= 1000
        units.pop(0)
    return f"{count} B" if units[0] == "B" else f"{amount:.1f} {units[0]}"
