"""Two nodes with data directories of their own and one directory of logs (`--log`)."""

import json
import os
import signal
import time
from contextlib import contextmanager

import pytest
from tests.integration.test_takeover import (
    APP,
    BATCH,
    START_S_MAX,
    Node,
    engine_of,
    is_stopped,
    quietly,
    request,
)
from tests.support.program import Program, command_of, until

from edgewise.log.segment_reader import SegmentReader

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]

LONGER_THAN_A_WRITER_MAY_TAKE_TO_END_S = 7.0
TAKEOVER_S_MAX = 20.0


@contextmanager
def start_nodes(directory, *options):
    app = directory / "sums.siddhi"
    app.write_text(APP)

    def start(name):
        return Program.start(
            *("run", str(app), "--engine", "embedded", "--http-port", "0", "--edge-port", "0"),
            *("--data", str(directory / name), "--log", str(directory / "shared")),
            *options,
            home=directory / f"{name}-home",
        )

    with start("d1") as first:
        active = Node(first)
        with start("d2") as second:
            second.wait_for_line("standing by", START_S_MAX)
            yield active, second


def read_totals(directory):
    reader = SegmentReader.open(directory / "shared" / "O")
    try:
        batches = reader.read(reader.earliest(), reader.head().offset)
        totals = [n for batch in batches for n in batch.rows.column("total").to_pylist()]
        return [n for n in totals if n is not None]
    finally:
        reader.close()


def is_refused(node):
    """Is an event refused, or the node's server gone?"""
    try:
        return request("POST", node.ingest, b'[{"data": {"k": "a", "v": 1}}]')[0] != 200
    except OSError:
        return True


def test_a_second_node_leaves_a_healthy_one_alone(tmp_path):
    with start_nodes(tmp_path) as (active, standby):
        end_s = time.monotonic() + LONGER_THAN_A_WRITER_MAY_TAKE_TO_END_S
        posted = 0
        while time.monotonic() < end_s:
            active.post(BATCH)
            posted += BATCH
            time.sleep(0.2)
        until(lambda: active.total() == posted, START_S_MAX)
        assert "ingest" not in standby.said
        server = active.ingest.removesuffix("/streams/S")
        health = json.loads(request("GET", f"{server}/healthz")[1])
        assert (health["role"], health["epoch"]) == ("active", 1)
        metrics = request("GET", f"{server}/metrics")[1].decode()
        assert f':{active.program.process.pid}"}} 1' in metrics, "the holder of the lease"


def test_the_standby_goes_on_from_the_checkpoint_of_a_node_that_was_killed(tmp_path):
    with start_nodes(tmp_path) as (active, standby):
        active.post(BATCH)
        until(lambda: active.total() == BATCH, START_S_MAX)
        active.program.process.kill()
        node = Node(standby)
        node.post(BATCH)
        until(lambda: quietly(node.total) == 2 * BATCH, START_S_MAX)
    assert read_totals(tmp_path) == list(range(1, 2 * BATCH + 1))


@pytest.mark.parametrize("its_engine", ["runs on", "is stopped too"])
def test_a_stopped_node_is_replaced_and_fenced_when_it_wakes(tmp_path, its_engine):
    with start_nodes(tmp_path) as (active, standby):
        active.post(BATCH)
        until(lambda: active.total() == BATCH, START_S_MAX)
        stopped = [active.program.process.pid]
        if its_engine == "is stopped too":
            stopped.append(engine_of(active.program))
        for pid in stopped:
            os.kill(pid, signal.SIGSTOP)
            until(lambda pid=pid: is_stopped(pid), START_S_MAX)
        began_s = time.monotonic()
        node = Node(standby)
        node.post(BATCH)
        assert time.monotonic() - began_s < TAKEOVER_S_MAX
        for pid in stopped:
            os.kill(pid, signal.SIGCONT)
        assert is_refused(active), "a node that lost its lease must not take events"
        active.program.wait_for_line("lost the lease", START_S_MAX)
        until(lambda: quietly(node.total) == 2 * BATCH, START_S_MAX)
        node.post(BATCH)
        until(lambda: quietly(node.total) == 3 * BATCH, START_S_MAX)
    assert read_totals(tmp_path) == list(range(1, 3 * BATCH + 1))


def test_an_engine_that_hangs_with_the_log_of_faults_does_not_keep_the_standby_from_computing(
    tmp_path,
):
    with start_nodes(tmp_path) as (active, standby):
        active.post(BATCH)
        until(lambda: active.total() == BATCH, START_S_MAX)
        engine = engine_of(active.program)
        os.kill(engine, signal.SIGSTOP)
        until(lambda: is_stopped(engine), START_S_MAX)
        active.program.process.kill()
        node = Node(standby)
        node.post(BATCH)
        until(lambda: quietly(node.total) == 2 * BATCH, START_S_MAX)
    assert read_totals(tmp_path) == list(range(1, 2 * BATCH + 1))


@pytest.mark.parametrize("standby", ["cold", "warm"])
def test_a_warm_standby_has_its_engine_before_it_is_active(tmp_path, standby):
    with start_nodes(tmp_path, "--standby", standby) as (active, second):
        active.post(BATCH)
        until(lambda: active.total() == BATCH, START_S_MAX)
        if standby == "warm":
            until(lambda: count_engines(second) == 1, START_S_MAX)
        before = [engine_of(second)] if count_engines(second) else []
        assert len(before) == (standby == "warm")
        active.program.process.kill()
        node = Node(second)
        node.post(BATCH)
        until(lambda: quietly(node.total) == 2 * BATCH, START_S_MAX)
        assert not before or engine_of(second) == before[0]
        second.ctrl_c()
        second.all_gone_after_s(20)
    assert read_totals(tmp_path) == list(range(1, 2 * BATCH + 1))


def count_engines(program):
    return sum("edgewise.node.processes.engine" in command_of(pid) for pid in program.alive())
