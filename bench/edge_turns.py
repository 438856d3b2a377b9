"""How long the turns of our server take, from the inside; on order of bench/edge.py."""

from __future__ import annotations

import time
from typing import Any

from bench.edge_load import QUANTILES, quantile
from edgewise.edge.server.sweeper import Sweeper
from edgewise.edge.transports.connection import Connection


def time_turns(
    before: dict[str, list[tuple[int, int]]],
) -> dict[str, list[tuple[int, int]]]:
    """From now on, how long each turn of the server takes: by the clock, by the processor. The
    system's part, writing to the socket and waking who reads there, is told apart.
    """
    if before:
        for times in before.values():
            times.clear()  # handshakes are over
        return before
    taken: dict[str, list[tuple[int, int]]] = {"turn, all": [], "turn, its own": [], "sweep": []}
    written = [0, 0]

    class Transport:
        def __init__(self, real: Any) -> None:
            self.real = real

        def __getattr__(self, name: str) -> Any:
            return getattr(self.real, name)

        def write(self, data: bytes) -> None:
            wall, cpu = time.perf_counter_ns(), time.thread_time_ns()
            self.real.write(data)
            written[0] += time.perf_counter_ns() - wall
            written[1] += time.thread_time_ns() - cpu

    def timed(plain: Any, mine: Any, own: Any = None) -> Any:
        def call(*args: Any) -> None:
            written[:] = 0, 0
            wall, cpu = time.perf_counter_ns(), time.thread_time_ns()
            plain(*args)
            wall, cpu = time.perf_counter_ns() - wall, time.thread_time_ns() - cpu
            mine.append((wall, cpu))
            if own is not None:
                own.append((wall - written[0], cpu - written[1]))

        return call

    served: Any = Connection
    made = served.connection_made
    served.connection_made = lambda self, transport: made(self, Transport(transport))
    served.data_received = timed(served.data_received, taken["turn, all"], taken["turn, its own"])
    swept: Any = Sweeper
    swept._sweep = timed(swept._sweep, taken["sweep"])  # noqa: SLF001 - a look inside
    return taken


def marks(taken: dict[str, list[tuple[int, int]]]) -> dict[str, tuple[int, list[float]]]:
    """How many there were, and p50, p99, p99.9, p99.99 and the longest in microseconds."""
    told = {}
    for what, times in taken.items():
        for index, by in enumerate(("clock", "processor")):
            us = [pair[index] / 1000 for pair in times]
            told[f"{what}, by the {by}"] = (len(us), [quantile(us, q) for q in QUANTILES])
    return told
