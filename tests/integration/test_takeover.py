"""Two nodes on one data directory: kill -9 the one that serves, the other has every event once."""

import json
import os
import signal
from contextlib import suppress
from pathlib import Path

import pytest
from tests.support.program import Program, command_of, request, until

from edgewise.log.segment_reader import SegmentReader
from edgewise.node.data_dir import DataDirectory

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]

START_S_MAX = 60
BATCH = 50
APP = """
@app:name('sums')
@source(type='http', @map(type='json'))
define stream S (k string, v long);

@sink(type='topic', path='sums/{k}', conflate='replace', recovery='precise')
define stream O (k string, total long);

from S select k, sum(v) as total group by k insert into O;
"""


class Node:
    """A running `edgewise run`, seen from outside."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.ingest = program.wait_for_line(r"(http://\S+/streams/S)", START_S_MAX).group(1)
        self.edge = program.wait_for_line(r"edge +(http://\S+:\d+)/", START_S_MAX).group(1)

    def post(self, count: int) -> None:
        events = [{"ts": 1000, "data": {"k": "a", "v": 1}}] * count
        status, body = request("POST", self.ingest, json.dumps(events).encode())
        assert status == 200, body

    def total(self) -> int:
        status, body = request("GET", f"{self.edge}/topics/sums/a")
        return json.loads(body)["total"] if status == 200 else 0


def totals_in_the_log(layout: DataDirectory) -> list[int]:
    reader = SegmentReader.open(layout.log_directory("O"))
    try:
        batches = reader.read(reader.earliest(), reader.head().offset)
        return [n for batch in batches for n in batch.rows.column("total").to_pylist()]
    finally:
        reader.close()


def engine_of(program: Program) -> int:
    return next(
        pid for pid in program.alive() if "edgewise.node.processes.engine" in command_of(pid)
    )


def is_stopped(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


@pytest.mark.parametrize("its_engine", ["ends", "lingers", "hangs"])
def test_the_standby_takes_over_with_every_event_once(tmp_path, its_engine):
    data = tmp_path / "data"
    (tmp_path / "sums.siddhi").write_text(APP)
    run = ("run", str(tmp_path / "sums.siddhi"), "--data", str(data), "--engine", "embedded")
    ports = ("--http-port", "0", "--edge-port", "0")
    with (
        Program.start(*run, *ports, home=tmp_path / "one") as one,
        Program.start(*run, *ports, home=tmp_path / "two") as two,
    ):
        # Whoever was first serves; the other says so.
        until(lambda: "standing by" in one.said + two.said, START_S_MAX)
        first, second = (two, one) if "standing by" in one.said else (one, two)
        node = Node(first)
        node.post(BATCH)
        node.post(BATCH)
        until(lambda: node.total() == 2 * BATCH, START_S_MAX)
        node.post(BATCH)  # acknowledged, and perhaps not yet computed
        engine = engine_of(first)
        if its_engine != "ends":
            os.kill(engine, signal.SIGSTOP)
            until(lambda: is_stopped(engine), START_S_MAX)  # else it may still see its node end
        os.kill(first.process.pid, signal.SIGKILL)
        if its_engine == "lingers":
            second.wait_for_line("waiting for the last writer to end", START_S_MAX)
            os.kill(engine, signal.SIGCONT)
        node = Node(second)
        node.post(BATCH)
        if its_engine == "hangs":
            os.kill(engine, signal.SIGCONT)
        until(lambda: quietly(node.total) == 4 * BATCH, START_S_MAX)
        first.all_gone_after_s(30)
        second.ctrl_c()
        second.all_gone_after_s(10)
    totals = [n for n in totals_in_the_log(DataDirectory(data)) if n is not None]
    assert totals == list(range(1, 4 * BATCH + 1))


def quietly(read):
    with suppress(OSError):
        return read()
    return None
