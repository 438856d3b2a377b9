"""Measure a takeover: until an event is acknowledged, its row is in the log, a client has it.

Two nodes with data directories of their own share the logs of one app. The active one is killed
(kill -9) or stopped (SIGSTOP); from that moment one event after the other is offered to the
standby. The peer is the cold standby, which starts everything after the win: the last column is
how much faster the warm one is for the last client. Afterwards the log is compared with what was
acknowledged: every total once and in order.

    python -m bench ha --quick          embedded, kill -9
    python -m bench ha                  embedded, kill -9 and SIGSTOP
    python -m bench.ha --engine spark   on Spark
"""

from __future__ import annotations

import argparse
import http.client
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from edgewise.client.sync import connect
from edgewise.log.segment_reader import SegmentReader
from edgewise.wire.view import Update

APP = """
@app:name('sums')
@source(type='http', delivery='effectively-once')
define stream S (k string, v long);
@sink(type='topic', path='sums/{k}', recovery='precise')
define stream O (k string, total long);
from S select k, sum(v) as total group by k insert into O;
"""
FAULTS = {"kill -9": signal.SIGKILL, "SIGSTOP": signal.SIGSTOP}
STANDBYS = ("cold", "warm")
BEFORE = 50  # events before the fault
PATIENCE_S = 300.0  # two JVMs that start on two busy cores
POLL_S = 0.01


@dataclass(frozen=True, slots=True)
class Takeover:
    """Seconds from the fault."""

    acknowledged: float
    computed: float
    seen: float


class BenchNode:
    def __init__(self, app: Path, name: str, options: list[str]) -> None:
        self.http_port, self.edge_port = find_free_port(), find_free_port()
        home = app.parent
        self.errors = (home / f"{name}.txt").open("w")
        self.process = subprocess.Popen(
            [
                *(sys.executable, "-m", "edgewise", "run", str(app)),
                *("--data", str(home / name), "--log", str(home / "shared")),
                *("--http-port", str(self.http_port), "--edge-port", str(self.edge_port)),
                *options,
            ],
            stderr=self.errors,
            start_new_session=True,
        )

    def said(self, words: str) -> bool:
        return words in Path(self.errors.name).read_text()

    def post(self, number: int) -> bool:
        """Whether the event was acknowledged; sending it again is harmless."""
        connection = http.client.HTTPConnection("127.0.0.1", self.http_port, timeout=2)
        headers = {"Content-Type": "application/json", "Idempotency-Key": f"bench/{number}"}
        try:
            connection.request("POST", "/streams/S", b'{"k": "a", "v": 1}', headers)
            return connection.getresponse().status == http.HTTPStatus.OK
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    def close(self) -> None:
        with suppress(ProcessLookupError):
            os.kill(self.process.pid, signal.SIGCONT)
        self.process.terminate()
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(10)
        self.process.kill()
        self.process.wait()
        self.errors.close()


def find_free_port() -> int:
    """Below the range that the kernel gives to others: a standby listens only minutes later."""
    while True:
        port = random.randrange(20_000, 30_000)
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port


def wait_until(condition: Callable[[], object], what: str) -> None:
    deadline_s = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > deadline_s:
            raise TimeoutError(f"{what}: not within {PATIENCE_S:.0f} s")
        time.sleep(POLL_S)


def read_totals(shared: Path) -> list[int]:
    reader = SegmentReader.open(shared / "O")
    try:
        batches = reader.read(reader.earliest(), reader.head().offset)
        totals = [n for b in batches for n in b.rows.column("total").to_pylist()]
        return [n for n in totals if n is not None]
    finally:
        reader.close()


class LastClient:
    """Subscribes at both edges, and keeps what it saw with the time."""

    def __init__(self, ports: list[int]) -> None:
        self.seen: dict[int, float] = {}
        self.went_back = 0
        self._urls = tuple(f"ws://127.0.0.1:{port}/ws" for port in ports)
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        last = 0
        with connect(self._urls) as edge:
            for event in edge.subscribe("sums/a"):
                if isinstance(event, Update):
                    total = int(event.value["total"])
                    self.went_back += total < last
                    last = total
                    self.seen.setdefault(total, time.monotonic())


def measure(engine: str, standby: str, fault: int) -> Takeover:
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="edgewise-ha-")))
        app = home / "app.siddhi"
        app.write_text(APP)
        options = ["--engine", engine, "--standby", standby]
        first = BenchNode(app, "one", options)
        stack.callback(first.close)
        wait_until(lambda: first.post(0), "the first node")
        second = BenchNode(app, "two", options)
        stack.callback(second.close)
        wait_until(lambda: second.said("standing by"), "the standby")
        client = LastClient([first.edge_port, second.edge_port])
        for number in range(1, BEFORE):
            wait_until(partial(first.post, number), "an event")
        wait_until(lambda: BEFORE in client.seen, "the client")
        time.sleep(15 if engine == "spark" else 3)  # let a warm standby get warm
        began_s = time.monotonic()
        os.kill(first.process.pid, fault)
        wait_until(lambda: second.post(BEFORE), "an acknowledgement of the standby")
        acknowledged_s = time.monotonic()
        shared, fresh = home / "shared", BEFORE + 1
        wait_until(lambda: fresh in read_totals(shared), "a row")
        computed_s = time.monotonic()
        wait_until(lambda: fresh in client.seen, "an update at the client")
        totals = read_totals(shared)
        if totals != list(range(1, fresh + 1)) or client.went_back:
            raise AssertionError(f"rows {totals}, client went back {client.went_back} times")
        times = (acknowledged_s, computed_s, client.seen[fresh])
        return Takeover(*(at - began_s for at in times))


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="bench.ha", description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--standby", choices=STANDBYS, help="only this one")
    parser.add_argument("--engine", choices=["embedded", "spark"], default="embedded")
    args = parser.parse_args(argv)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # leave no node behind
    faults = {"kill -9": FAULTS["kill -9"]} if args.quick else FAULTS
    print("| engine | fault | standby | acknowledged | row in the log | client has it | ratio |")
    print("|---|---|---|---|---|---|---|")
    for fault, number in faults.items():
        cold_s = 0.0
        for standby in [args.standby] if args.standby else STANDBYS:
            found = measure(args.engine, standby, number)
            cold_s = cold_s or found.seen
            times = f"{found.acknowledged:.2f} s | {found.computed:.2f} s | {found.seen:.2f} s"
            ratio = f"{cold_s / found.seen:.1f}"
            print(f"| {args.engine} | {fault} | {standby} | {times} | {ratio} |", flush=True)
    print("every run ended with each acknowledged event once in the log and no client gone back")
    return 0


if __name__ == "__main__":
    sys.exit(main())
