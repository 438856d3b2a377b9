"""`edgewise state`: what the apps of a data directory hold, as lines for a person or as JSON."""

from __future__ import annotations

import dataclasses
import datetime as dt
import json
from collections.abc import Iterator
from pathlib import Path

from edgewise.engines.homes import Home, LocalHome, home
from edgewise.engines.looks import PartLook, looks
from edgewise.errors import SetupError

TITLES = (
    "fragment",
    "part",
    "versions",
    "files",
    "on disk",
    "keys",
    "state",
    "waits since",
    "due",
)


def places(where: str) -> dict[str, Home]:
    """State by app: of a data directory, a checkpoint, or a place given with `--state`."""
    if "://" in where:
        place = home(where)
        return {str(place): place}
    path = Path(where)
    if (path / "state").is_dir():
        return {path.name: LocalHome(path / "state")}
    below = sorted((path / "checkpoint").glob("*/state"))
    if below:
        return {p.parent.name: LocalHome(p) for p in below}
    raise SetupError(f"{where} is no data directory and no checkpoint: there is no state in it")


def lines(where: str, *, as_json: bool = False, largest: int = 0) -> Iterator[str]:
    for app, place in places(where).items():
        found = list(looks(place, largest))
        if as_json:
            yield from (json.dumps({"app": app} | dataclasses.asdict(look)) for look in found)
        else:
            yield from _table(app, found)


def _table(app: str, found: list[PartLook]) -> Iterator[str]:
    keys, held = sum(p.keys for p in found), sum(p.state_bytes for p in found)
    disk = sum(p.disk_bytes for p in found)
    yield f"app {app}: {keys} keys, {_size(held)} of state, {_size(disk)} on disk"
    rows = [TITLES, *(_row(look) for look in found)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(TITLES))]
    for row in rows if found else ():
        yield "  " + "  ".join(t.ljust(w) for t, w in zip(row, widths, strict=True)).rstrip()
    for look in found:
        for key in look.largest:
            yield f"  {look.fragment} {look.partition}: {key.key} holds {_size(key.bytes)}"


def _row(look: PartLook) -> tuple[str, ...]:
    return (
        look.fragment,
        str(look.partition),
        f"{look.oldest_version}-{look.version}",
        str(look.files),
        _size(look.disk_bytes),
        str(look.keys),
        _size(look.state_bytes),
        "-" if look.waits_since is None else f"offset {look.waits_since}",
        "-" if look.due is None else _moment(look.due),
    )


def _moment(ms: int) -> str:
    at = dt.datetime.fromtimestamp(ms / 1000, dt.UTC)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _size(count: int) -> str:
    amount, units = float(count), ["B", "kB", "MB", "GB", "TB"]
    while amount >= 1000 and len(units) > 1:
        amount /= 1000
        units.pop(0)
    return f"{count} B" if units[0] == "B" else f"{amount:.1f} {units[0]}"
