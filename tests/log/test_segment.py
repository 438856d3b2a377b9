"""The embedded log against a model, and against kill -9."""

import multiprocessing
import os
import random
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from tests.support.killed_writer import CONFIG, append_until_killed

from edgewise.log.api import CLOCK_NONE, LogConfig
from edgewise.log.files import segment_bases, segment_path
from edgewise.log.laws import SCHEMA, make_rows, read_all
from edgewise.log.segment_reader import SegmentReader
from edgewise.log.segment_writer import SegmentWriter

KILLS_QUICK, KILLS_MANY = 4, 1000


class LogMachine(RuleBasedStateMachine):
    """PendingAppend, read, reopen, crash with a torn tail: the log is always the model."""

    @initialize(segment=st.sampled_from([2_000, 20_000, 10**9]), rows=st.sampled_from([2, 1000]))
    def start(self, segment, rows):
        self.directory = Path(tempfile.mkdtemp())
        self.config = LogConfig(segment_bytes_max=segment, batch_rows_max=rows)
        self.times = []
        self.sequences = {}
        self.epoch = 0
        self.open()

    def open(self):
        self.writer = SegmentWriter.open(self.directory, SCHEMA, self.config)
        assert self.writer.head.epoch > self.epoch
        self.epoch = self.writer.head.epoch
        assert self.writer.head.offset == len(self.times)
        self.reader = SegmentReader.open(self.directory)

    @rule(times=st.lists(st.integers(-(10**6), 10**12), max_size=7))
    def append(self, times):
        done = self.writer.append(make_rows(times))
        assert (done.first, done.end) == (len(self.times), len(self.times) + len(times))
        self.times += times

    @rule(name=st.sampled_from("pq"), sequence=st.integers(0, 20), time=st.integers(0, 99))
    def append_once(self, name, sequence, time):
        done = self.writer.append(make_rows([time]), producer=name, sequence=sequence)
        assert done.duplicate == (sequence <= self.sequences.get(name, -1))
        if not done.duplicate:
            self.sequences[name] = sequence
            self.times.append(time)

    @rule()
    def reopen(self):
        self.writer.close()
        self.open()

    @rule(data=st.data())
    def crash(self, data):
        """A group of appends was under way: some prefix of its bytes reached the disk."""
        path = segment_path(self.directory, self.writer._totals.base)
        durable = path.stat().st_size
        times = data.draw(st.lists(st.integers(0, 9), min_size=1, max_size=7))
        head = (self.directory / "head").read_bytes()
        self.writer.append(make_rows(times))
        self.writer.close()
        if self.writer._totals.base == segment_bases(self.directory)[-1] and (
            path == segment_path(self.directory, self.writer._totals.base)
        ):
            size = path.stat().st_size
            keep = data.draw(st.integers(durable, size))
            os.truncate(path, keep)
            (self.directory / "head").write_bytes(head)
            whole = keep == size
        else:
            whole = True
        if whole:
            self.times += times
        self.open()

    @rule(data=st.data())
    def read(self, data):
        start = data.draw(st.integers(0, len(self.times)))
        end = data.draw(st.integers(start, len(self.times)))
        found, at = [], start
        for batch in self.reader.read(start, end):
            assert batch.first == at
            assert batch.clock_before == max(self.times[:at], default=CLOCK_NONE)
            found += batch.rows.column("_ts").to_pylist()
            at += batch.rows.num_rows
        assert found == self.times[start:end]

    @invariant()
    def the_head_is_the_model(self):
        if hasattr(self, "reader"):
            assert self.reader.head().offset == len(self.times)
            assert self.reader.clock(len(self.times)) == max(self.times, default=CLOCK_NONE)

    def teardown(self):
        if hasattr(self, "writer"):
            self.writer.close()
            shutil.rmtree(self.directory)


LogMachine.TestCase.settings = settings(max_examples=25, stateful_step_count=25, deadline=None)
TestLogIsTheModel = LogMachine.TestCase

forks = multiprocessing.get_context("forkserver")
forks.set_forkserver_preload(["tests.support.killed_writer"])


def kill_and_check(directory, rounds, seed):
    """Answers how many acknowledged appends were checked."""
    chance = random.Random(seed)
    acknowledged = {}
    for _ in range(rounds):
        here, there = forks.Pipe(duplex=False)
        process = forks.Process(target=append_until_killed, args=(str(directory), there))
        process.start()
        there.close()
        said = [here.recv() for _ in range(chance.randint(1, 60))]
        process.kill()
        with suppress(EOFError):
            while True:
                said.append(here.recv())
        process.join()
        here.close()
        for name, at in said:
            acknowledged[name] = max(acknowledged.get(name, -1), at)
        check(directory, acknowledged)
    return sum(last + 1 for last in acknowledged.values())


def check(directory, acknowledged):
    """Every acknowledged append is there whole, once, in order; nothing is torn."""
    SegmentWriter.open(directory, SCHEMA, CONFIG).close()
    table = read_all(SegmentReader.open(directory))
    last = {}
    reader = SegmentReader.open(directory)
    for batch in reader.read(0, reader.head().offset):
        times = batch.rows.column("_ts").to_pylist()
        assert len(set(times)) == 1
        assert len(times) == 1 + times[0] % 5
        last.setdefault(times[0], 0)
        last[times[0]] += 1
    for at in range(max(acknowledged.values(), default=-1) + 1):
        wanted = sum(at <= highest for highest in acknowledged.values())
        assert wanted <= last.get(at, 0) <= 3, at
    assert table.num_rows == reader.head().offset


def test_nothing_acknowledged_dies_with_the_writer(tmp_path):
    checked = kill_and_check(tmp_path / "log", KILLS_QUICK, seed=1)
    assert checked > 0


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_a_thousand_kills(tmp_path):
    checked = 0
    for part in range(50):  # a fresh log each time, or the checks would grow with the square
        checked += kill_and_check(tmp_path / str(part), KILLS_MANY // 50, seed=part)
    print(f"faults tried: {KILLS_MANY} kill -9; acknowledged appends checked: {checked}")
