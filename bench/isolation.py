"""Claim: what a function that runs isolated costs, one call at a time and a thousand at once.

The peer is the same function in this process, in the same run.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable

from edgewise.node.isolation.isolated_pool import CallLimits, IsolatedPool
from edgewise.plan.scripts import Script

BODY = "return round(data[0] * 1.5 + len(data[1]), 2)"
BATCH = 1_000


def measure_us(run: Callable[[], object], calls: int, seconds: float) -> float:
    """Microseconds of a call, the best of several runs."""
    best, end = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter()
        run()
        best = min(best, (time.perf_counter() - start) / calls * 1e6)
    return best


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    seconds = 1.0 if parser.parse_args(argv).quick else 5.0
    script = Script("f", BODY)
    pool = IsolatedPool("f", script.source(), CallLimits())
    calls = [[n, "abc"] for n in range(BATCH)]
    try:
        inside = measure_us(lambda: [script(*c) for c in calls], BATCH, seconds)
        single = measure_us(lambda: [pool.call(c) for c in calls], BATCH, seconds)
        many = measure_us(lambda: pool.call_many(calls), BATCH, seconds)
    finally:
        pool.close()
    print(f"{'us a call':<28}{'':>8}   ratio to in process")
    for name, took in (("in process", inside), ("alone", single), (f"{BATCH:,} at once", many)):
        print(f"{name:<28}{took:>8.2f}   {took / inside:.1f}x")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
