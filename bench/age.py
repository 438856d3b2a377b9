"""End-to-end age in the demo, p50 and p99: from capture to a client of the edge.

The peer is the shortest way there is: the same events published straight into the edge of an
otherwise idle node would be younger only by what the log and Spark take. So the same demo runs a
second time on the embedded engine, and the difference is what Spark's micro-batches cost.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from edgewise.client.aio import connect
from edgewise.wire.view import Update


@contextmanager
def demo(engine: str) -> Iterator[str]:
    """A running demo; yields the address of its edge."""
    command = [sys.executable, "-m", "edgewise", "demo", "--engine", engine]
    process = subprocess.Popen(
        [*command, "--http-port", "0", "--edge-port", "0"], stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    try:
        for line in process.stderr:
            if found := re.search(r"page +http://(\S+)/", line):
                yield f"ws://{found[1]}/ws"
                break
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate()


async def ages_ms(url: str, warm_s: float, lasting_s: float) -> list[float]:
    """Ages of all alerts that arrive in a stretch of time, after a first one to warm up."""
    found: list[float] = []
    begin = time.monotonic() + warm_s
    async with connect(url) as client:
        subscription = client.subscribe("alerts/+")
        while (now := time.monotonic()) < begin + lasting_s:
            try:
                left = begin + lasting_s - now
                event = await asyncio.wait_for(anext(subscription), left)
            except TimeoutError:
                break
            if isinstance(event, Update) and now >= begin:
                found.append(time.time() * 1000 - event.meta.at_us / 1000)
    return sorted(found)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="bench.age", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="shorter")
    arguments = parser.parse_args(argv)
    warm_s, lasting_s = (15, 20) if arguments.quick else (30, 60)
    print(f"{'engine':<10}{'updates':>9}{'p50 ms':>9}{'p99 ms':>9}{'max ms':>9}")
    medians = {}
    for engine in ("spark", "embedded"):
        with demo(engine) as url:
            ages = asyncio.run(ages_ms(url, warm_s, lasting_s))
        p50, p99 = ages[len(ages) // 2], ages[int(len(ages) * 0.99)]
        medians[engine] = p50
        print(f"{engine:<10}{len(ages):>9}{p50:>9.0f}{p99:>9.0f}{ages[-1]:>9.0f}")
    print(f"spark / embedded, median age: {medians['spark'] / medians['embedded']:.1f}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
