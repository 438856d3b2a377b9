"""Claim: whole arrays through our windows beat eep (npm) event by event, on every window.

    python -m bench eep [--quick]

Prints million events a second of processor time, the best of three: `push`, `push_many`, the peer
under Node, and push_many / peer. The peer is fetched into a temporary directory; without Node or a
network its column is empty. The last run is kept in bench/results/eep.json.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from edgewise import eep

SIZE = 64
ROUNDS = 3  # the best counts, on both sides
PEER = Path(__file__).parent / "peers" / "eep.js"
PEER_VERSION = "eep@0.3.1"

RESULTS = Path(__file__).parent / "results"

Make = Callable[[], eep.Window]
AGGREGATES: dict[str, Callable[[], eep.Aggregate]] = {
    "sum": eep.Sum, "max": eep.Max, "all": eep.Stats
}  # fmt: skip


def moment(counted: Any) -> Any:
    return counted // SIZE


def windows(make: Callable[[], eep.Aggregate]) -> dict[str, Make]:
    """Each closes every SIZE events."""
    return {
        "tumbling": lambda: eep.tumbling(make(), SIZE),
        "sliding": lambda: eep.sliding(make(), SIZE),
        "periodic": lambda: eep.periodic(make(), SIZE, eep.Counting()),
        "monotonic": lambda: eep.monotonic(make(), eep.EventTime(moment, stamps=moment)),
    }


WINDOWS: dict[str, Make] = {
    f"{window} {name}": made
    for name, make in AGGREGATES.items()
    for window, made in windows(make).items()
}


def rate_many(make: Make, items: int) -> float:
    values = np.arange(items, dtype=float)
    seconds = []
    for _ in range(ROUNDS):
        window, start = make(), time.process_time()
        window.push_many(values)
        seconds.append(time.process_time() - start)
    return items / min(seconds) / 1e6


def rate_one(make: Make, items: int) -> float:
    values = [float(i) for i in range(items)]
    push = make().push
    start = time.process_time()
    for value in values:
        push(value)
    return items / (time.process_time() - start) / 1e6


def peer(items: int) -> dict[str, float]:
    """What the peer does on this machine; nothing where it cannot run."""
    npm, node = shutil.which("npm"), shutil.which("node")
    if npm is None or node is None:
        return {}
    with tempfile.TemporaryDirectory() as home:
        fetched = subprocess.run(
            [npm, "install", "--silent", "--prefix", home, PEER_VERSION],
            capture_output=True, check=False, timeout=120,
        )  # fmt: skip
        if fetched.returncode:
            return {}
        command = [node, str(PEER), f"{home}/node_modules/eep", str(items), str(SIZE), str(ROUNDS)]
        done = subprocess.run(command, capture_output=True, check=True, text=True, timeout=300)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args(argv).quick
    items = 1_000_000 if quick else 5_000_000
    theirs = peer(items)
    load = os.getloadavg()[0]
    print(f"M ev/s, windows of {SIZE}, load of the machine before: {load:.1f}")
    print(f"{'window':14} {'push':>8} {'push_many':>10} {'eep (npm)':>10} {'ratio':>7}")
    found = []
    for name, make in WINDOWS.items():
        one, many = rate_one(make, items // 20), rate_many(make, items)
        beside = f"{theirs[name]:10.1f} {many / theirs[name]:6.1f}x" if name in theirs else ""
        print(f"{name:14} {one:8.2f} {many:10.1f} {beside}", flush=True)
        found.append({"window": name, "push": one, "push_many": many, "eep": theirs.get(name)})
    kept = json.dumps({"load": load, "events": items, "windows": found}, indent=1)
    (RESULTS / "eep.json").write_text(kept + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
