"""Faults while events come in: nothing acknowledged is lost, nothing is twice, order is kept.

The report prints what was tried: `pytest -m slow -s tests/gateway/test_faults.py`.
"""

import http.client
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from tests.support.brokers import free_port, wait_for_port
from tests.support.program import until

from edgewise.log.segment_reader import SegmentReader

ROOT = Path(__file__).parents[2]
KILLS = 10
WAIT_S = 30
PRODUCERS = 3
BATCH = 5


class Node:
    def __init__(self, directory):
        self.port = free_port()
        self._directory = directory
        self._process = None

    def start(self):
        environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.ingest_child", self._directory, str(self.port)],
            env=environment,
            cwd=ROOT,
            stdout=subprocess.DEVNULL,
        )
        wait_for_port(self.port, self._process)

    def kill(self):
        self._process.send_signal(signal.SIGKILL)
        self._process.wait(10)


class Sender(threading.Thread):
    """One producer: sends a batch until it is acknowledged, then the next one."""

    def __init__(self, who, port, stop):
        super().__init__()
        self.who = who
        self.acknowledged = 0
        self.sent_again = 0
        self._port = port
        self._stop_sending = stop

    def run(self):
        sequence = 0
        while not self._stop_sending.is_set():
            if self._send(sequence):
                sequence += 1
                self.acknowledged += BATCH
            else:
                self.sent_again += 1
                time.sleep(0.02)

    def _send(self, sequence):
        events = [{"who": self.who, "n": sequence * BATCH + i} for i in range(BATCH)]
        headers = {
            "Content-Type": "application/json",
            "Idempotency-Key": f"sender-{self.who}/{sequence}",
        }
        client = http.client.HTTPConnection("127.0.0.1", self._port, timeout=5)
        try:
            client.request("POST", "/streams/S", json.dumps(events), headers)
            return client.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False
        finally:
            client.close()


@pytest.mark.slow
def test_a_node_killed_at_random_moments_loses_and_doubles_nothing(tmp_path):
    seed = random.randrange(2**32)
    chance = random.Random(seed)
    node = Node(tmp_path / "log")
    stop = threading.Event()
    senders = [Sender(who, node.port, stop) for who in range(PRODUCERS)]
    node.start()
    for sender in senders:
        sender.start()
    for _ in range(KILLS):
        time.sleep(chance.uniform(0.05, 0.6))
        node.kill()
        node.start()
    before = [sender.acknowledged for sender in senders]
    until(lambda: all(s.acknowledged > b for s, b in zip(senders, before, strict=True)), WAIT_S)
    stop.set()
    for sender in senders:
        sender.join(WAIT_S)
    node.kill()
    reader = SegmentReader.open(tmp_path / "log")
    rows = [r for b in reader.read(0, reader.head().offset) for r in b.rows.to_pylist()]
    reader.close()
    for sender in senders:
        got = [r["n"] for r in rows if r["who"] == sender.who]
        assert got == list(range(len(got))), f"seed {seed}: lost, doubled or out of order"
        assert len(got) >= sender.acknowledged, f"seed {seed}: acknowledged and lost"
    again = sum(s.sent_again for s in senders)
    print(
        f"\nfaults: {KILLS} x kill -9 (seed {seed}); events checked: {len(rows)}, "
        f"batches sent again: {again}"
    )
    assert len(rows) > KILLS * BATCH
