"""What counts as healthy, by what the parts did; and a real node whose engine hangs or dies."""

import asyncio
import json
import os
import signal
import stat
import time
import urllib.error
import urllib.request

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.node_process import PATIENCE_S, NodeProcess, children_of, post

from edgewise.node.processes.engine_supervisor import EngineStatus
from edgewise.node.upkeep.health import (
    CLOCK_RECENT_S,
    RECENT_S,
    SLOW_MAX_S,
    ClockWatch,
    DiskSpace,
    HealthMonitor,
    RecentIncrease,
    measure_disk,
)

STALL_S = 30.0


def test_an_engine_is_judged_by_progress_and_not_by_being_alive():
    status = EngineStatus()
    assert status.describe_problem(0, STALL_S) == "starting"
    status.running = True
    status.record({"offsets": {"S": 5}, "backlog_rows": 9}, 10)
    assert not status.describe_problem(20, STALL_S)
    assert status.describe_problem(41, STALL_S).startswith("no report for 31 s")
    status.record({"offsets": {"S": 5}, "backlog_rows": 9}, 41)
    assert status.describe_problem(41, STALL_S) == "no progress for 31 s while 9 rows wait"
    status.record({"offsets": {"S": 6}, "backlog_rows": 8}, 42)
    assert not status.describe_problem(42, STALL_S)
    status.running, status.failed = False, "no disk"
    assert status.describe_problem(42, STALL_S) == "not running: no disk"


def test_an_engine_with_nothing_to_do_is_healthy_however_long():
    status = EngineStatus(running=True)
    for now_s in range(0, 1000, 10):
        status.record({"offsets": {"S": 5}, "backlog_rows": 0}, now_s)
        assert not status.describe_problem(now_s, STALL_S)


@given(st.integers(0, 10**14), st.integers(1, 10**14))
def test_ingest_slows_down_before_it_stops(free, total):
    disk = DiskSpace(free, total)
    assert 0 <= disk.pause_s <= SLOW_MAX_S
    assert disk.full <= disk.low
    if disk.problem:
        assert free <= disk.full
        assert disk.pause_s == SLOW_MAX_S or disk.low == disk.full
    if free > disk.low:
        assert not disk.pause_s
        assert not disk.problem


def test_the_disk_of_a_directory_is_measured(tmp_path):
    disk = measure_disk(tmp_path)
    assert 0 < disk.free < disk.total


def test_a_refused_append_counts_for_a_while():
    recent = RecentIncrease()
    assert not recent.check(0, 100)
    assert recent.check(1, 101)
    assert recent.check(1, 100 + RECENT_S)
    assert not recent.check(1, 102 + RECENT_S)


def test_a_jump_of_the_clock_is_reported_for_a_while():
    watch = ClockWatch()
    assert not watch.describe(1_000, 1)
    assert not watch.describe(1_001, 2)
    assert "-601 s" in watch.describe(401, 3)
    assert watch.describe(402, 4)
    assert not watch.describe(403 + CLOCK_RECENT_S, 4 + CLOCK_RECENT_S)


def test_each_change_is_said_once_and_reasons_are_for_callers_with_a_token():
    parts = {"engine": "", "disk": ""}
    monitor = HealthMonitor(lambda _now_s: parts)
    assert not monitor.report.ready
    assert not list(monitor.check(0))
    assert monitor.report.ready
    parts["disk"] = "/secret/path is full"
    assert list(monitor.check(1)) == ["disk: /secret/path is full"]
    assert not list(monitor.check(2))
    assert monitor.report.to_dict(detailed=False) == {
        "status": "failing",
        "parts": {"engine": "ok", "disk": "failing"},
    }
    assert monitor.report.to_dict(detailed=True)["parts"]["disk"] == "/secret/path is full"
    parts["disk"] = ""
    assert list(monitor.check(3)) == ["disk: works again"]


def test_the_topic_is_published_when_it_changes():
    async def scenario():
        values, published = [], asyncio.Event()

        def publish(value):
            values.append(value)
            published.set()

        task = asyncio.create_task(HealthMonitor(lambda _: {"disk": ""}).run(publish, print))
        await asyncio.wait_for(published.wait(), PATIENCE_S)
        task.cancel()
        return values

    assert asyncio.run(scenario()) == [{"status": "ok", "parts": {"disk": "ok"}}]


def wait_health(url, wanted):
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            with urllib.request.urlopen(url, timeout=PATIENCE_S) as answer:
                found = answer.status, json.load(answer)
        except urllib.error.HTTPError as refused:
            found = refused.code, json.load(refused)
        if wanted(*found):
            return found[1]
        assert time.monotonic() < deadline, found
        time.sleep(0.05)


@pytest.fixture
def node(tmp_path):
    app = tmp_path / "app.siddhi"
    app.write_text("define stream S (v int);\nfrom S select v insert into O;\n")
    arguments = ("--engine", "embedded", "--data", tmp_path / "data", "--stall-seconds", "2")
    node = NodeProcess("run", app, *arguments, "--http-port", "0", "--edge-port", "0")
    yield node
    node.stop()


def test_health_tells_of_an_engine_that_hangs_or_died_and_of_one_that_came_back(node, tmp_path):
    pages = [
        f"{door}/{page}" for door in (node.ingest, node.edge) for page in ("healthz", "readyz")
    ]
    for page in pages:
        wait_health(page, lambda code, _: code == 200)
    post(f"{node.ingest}/streams/S", [{"v": 1}])
    (engine,) = children_of(node.process.pid)
    os.kill(engine, signal.SIGSTOP)
    for page in pages:
        found = wait_health(page, lambda code, _: code == 503)
        assert "no report" in found["parts"]["engine"]
    for door in (node.ingest, node.edge):
        wait_health(f"{door}/livez", lambda code, _: code == 200)
    node.said("health +engine: no report")
    os.kill(engine, signal.SIGKILL)
    wait_health(pages[0], lambda _, body: "code -9" in body["parts"]["engine"])
    for page in pages:
        wait_health(page, lambda code, _: code == 200)
    node.said("health +engine: works again")
    open_to_others = [
        path
        for path in (tmp_path / "data").rglob("*")
        if stat.S_IMODE(path.stat().st_mode) & 0o077
    ]
    assert not open_to_others
