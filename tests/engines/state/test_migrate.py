"""An app changes under a checkpoint: between two steps, after a crash, and twice in a row."""

import random

import pytest

from edgewise.engines.batch import run
from edgewise.engines.batch.live_kernels import LiveKernels
from edgewise.engines.embedded.engine import EmbeddedEngine
from edgewise.engines.state.migrate import CHECKPOINT_FILES, require_own_checkpoint
from edgewise.errors import SetupError, StateError
from edgewise.event.event import Event
from edgewise.lang import compile_app
from edgewise.log.segment_writer import SegmentWriter
from edgewise.node.commands.replay import load_logs, read_rows
from edgewise.node.data_dir import DataDirectory

HEAD = "define stream S (k string, v int); define stream T (k string, v int);\n"
SUMS = "@info(name='sums') from S select k, sum(v) as s group by k insert into Sums;\n"
PAIRS = (
    "@info(name='pairs') from every e1=S -> e2=T[k == e1.k] within 1 sec "
    "select e1.v as a, e2.v as b insert into Pairs;\n"
)
COUNT = "@info(name='count') from S select count() as n insert into Counts;\n"
ODD = "@info(name='odd') from T[v % 2 == 1] select k, v insert into Odd;\n"
PLANS = [
    SUMS + PAIRS,
    ODD + SUMS + COUNT + PAIRS,
    COUNT + PAIRS.replace("1 sec", "2 sec"),
    SUMS,
    ODD + SUMS + PAIRS,
]


def events(seed, count=60):
    dice, now = random.Random(seed), 1000
    made = []
    for _ in range(count):
        now += dice.choice([0, 10, 300])
        row = (dice.choice("abc"), dice.randint(0, 9))
        made.append(Event(dice.choice("ST"), now, row))
    return made


class Running:
    """A live app whose text may change; its writers are those of the plan at hand."""

    def __init__(self, tmp_path, made):
        self.layout = DataDirectory(tmp_path)
        self.writers = {}
        self.live = None
        load_logs(compile_app(HEAD + SUMS + ODD).app, made, self.layout)

    def take(self, text):
        self.stop()
        self.app = compile_app(HEAD + text).app
        for s in self.app.outputs:
            self.writers[s.name] = SegmentWriter.open(self.layout.log_directory(s.name), s.schema)
        self.live = EmbeddedEngine.open(
            self.app,
            logs={s.name: self.layout.log_directory(s.name) for s in self.app.inputs},
            writers=self.writers,
            checkpoint=self.layout.checkpoint("app"),
            rows_max=5,
        )
        return self.live.location.change

    def stop(self):
        for part in (*self.writers.values(), *([self.live] if self.live else [])):
            part.close()
        self.writers, self.live = {}, None

    def rows(self, stream):
        schema = self.app.stream(stream).schema
        return [(e.ts, e.data) for e in read_rows(self.layout.log_directory(stream), schema)]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("lost", [False, True])
def test_queries_that_stay_keep_their_state_when_others_change(tmp_path, monkeypatch, seed, lost):
    """Every few steps the plan becomes another one, that also sums; with or without memory."""
    made, dice = events(seed), random.Random(seed)
    running = Running(tmp_path, made)
    running.take(SUMS + PAIRS)
    plans = [p for p in PLANS if SUMS in p]
    while running.live.run_batch(0):
        if dice.random() < 0.3:
            if lost:
                monkeypatch.setattr(run, "_live", LiveKernels())
            running.take(dice.choice(plans))
    found = running.rows("Sums")
    running.stop()
    totals, expected = {}, []
    for e in made:
        if e.stream == "S":
            totals[e.data[0]] = totals.get(e.data[0], 0) + e.data[1]
            expected.append((e.ts, (e.data[0], totals[e.data[0]])))
    assert found == expected


def test_the_difference_is_reported_and_changed_queries_start_empty(tmp_path):
    running = Running(tmp_path, events(3, 40))
    assert running.take(PLANS[0]) is None
    for _ in range(3):
        running.live.run_batch(0)
    change = running.take(PLANS[1])
    assert set(change.kept) == {"query sums", "query pairs"}  # they run apart from the new ones
    assert change.added == ("query count", "query odd")
    running.live.run_batch(0)
    change = running.take(PLANS[2])
    assert change.changed == ("query pairs",)
    assert change.removed == ("query odd", "query sums")
    while running.live.run_batch(0):
        pass
    counts = [n for _, (n,) in running.rows("Counts")]
    assert counts == list(range(1, len(counts) + 1))
    assert running.take(PLANS[2]) is None
    kept = running.layout.checkpoint("app") / "state"
    assert [p.name for p in kept.iterdir()] == ["2"]
    running.stop()


def test_a_query_that_loses_its_key_is_rebuilt_from_the_log(tmp_path):
    """A neighbour of the same target that counts over all keys takes the key from both."""
    made = events(5, 40)
    running = Running(tmp_path, made)
    running.take(SUMS)
    for _ in range(4):
        running.live.run_batch(0)
    total = "@info(name='total') from S select 'all' as k, sum(v) as s insert into Sums;\n"
    assert running.take(SUMS + total).rebuilt == ("query sums",)
    while running.live.run_batch(0):
        pass
    last = {key: value for _, (key, value) in running.rows("Sums") if key != "all"}
    running.stop()
    sums = {}
    for event in made:
        if event.stream == "S":
            sums[event.data[0]] = sums.get(event.data[0], 0) + event.data[1]
    assert last == sums


def test_an_interrupted_migration_is_done_again(tmp_path, monkeypatch):
    running = Running(tmp_path, events(4, 40))
    running.take(PLANS[0])
    for _ in range(4):
        running.live.run_batch(0)

    def crash(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("edgewise.engines.state.migrate._write", crash)
        with pytest.raises(KeyboardInterrupt):
            running.take(ODD + PLANS[0])
    running.stop()
    assert "query sums" in running.take(ODD + PLANS[0]).kept
    while running.live.run_batch(0):
        pass
    last = {}
    for _, (key, total) in running.rows("Sums"):
        last[key] = total
    running.stop()
    expected = {}
    for e in events(4, 40):
        if e.stream == "S":
            expected[e.data[0]] = expected.get(e.data[0], 0) + e.data[1]
    assert last == expected


def test_a_torn_plan_is_refused(tmp_path):
    running = Running(tmp_path, events(5, 10))
    running.take(PLANS[0])
    running.stop()
    (running.layout.checkpoint("app") / "plan.json").write_bytes(b"{")
    with pytest.raises(StateError, match=r"plan.json is torn"):
        running.take(PLANS[0])
    running.stop()


@pytest.mark.parametrize(("mine", "other"), [("spark", "embedded"), ("embedded", "spark")])
def test_a_checkpoint_of_another_engine_is_refused(tmp_path, mine, other):
    require_own_checkpoint(tmp_path, mine)
    (tmp_path / CHECKPOINT_FILES[other]).touch()
    require_own_checkpoint(tmp_path, other)
    with pytest.raises(SetupError, match=f"was written by --engine {other}.* another --data"):
        require_own_checkpoint(tmp_path, mine)
