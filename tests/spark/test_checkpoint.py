"""A checkpoint goes on as it was left, also with another number of partitions."""

import json

import msgspec
import pytest

from edgewise.engines.batch.inputs import InputLogs
from edgewise.engines.batch.job import BatchRange
from edgewise.engines.batch.partitioner import assign_key
from edgewise.engines.state.store import StateStore
from edgewise.errors import StateError
from edgewise.kernel import serialize as snapshot
from edgewise.plan.fragments import Fragment
from edgewise.spark.checkpoint import Checkpoint

KEYED = Fragment("keyed", ("q",), ("S",), keys=(("S", ("k",)),))
ALONE = Fragment("alone", ("r",), ("S",), why="it is")
KEYS = [(text,) for text in ("a", "b", "c", "d", None)]


def begun(tmp_path, batch_id=1):
    """Two partitions, batches 0 and 1 committed, a third one begun."""
    checkpoint = Checkpoint(tmp_path)
    record = checkpoint.open(2, [KEYED, ALONE])
    for version in range(batch_id + 2):
        for part in range(2):
            mine = [k for k in KEYS if assign_key(k, 2) == part]
            changed = [(snapshot.pack_key(k), str(version).encode()) for k in mine]
            StateStore(checkpoint.locate_state(record, "keyed"), part).save(version, changed)
        alone = [(snapshot.pack_key(()), str(version).encode())]
        StateStore(checkpoint.locate_state(record, "alone"), 0).save(version, alone)
    (checkpoint.spark / "commits").mkdir(parents=True)
    for version in range(batch_id + 1):
        (checkpoint.spark / "commits" / str(version)).touch()
    return checkpoint


@pytest.mark.parametrize("parts", [1, 3, 8])
def test_another_number_of_partitions_moves_the_keys_of_the_committed_batch(tmp_path, parts):
    checkpoint = begun(tmp_path)
    before = checkpoint.read()
    record = Checkpoint(tmp_path).open(parts, [KEYED, ALONE])
    assert (record.partitions, record.id) == (parts, before.id)
    for key in KEYS:
        store = StateStore(checkpoint.locate_state(record, "keyed"), assign_key(key, parts))
        assert store.load(1)[snapshot.pack_key(key)] == b"1"
    assert list(StateStore(checkpoint.locate_state(record, "alone"), 0).load(1).values()) == [b"1"]
    assert [p.name for p in (tmp_path / "state").iterdir()] == [str(record.generation)]


def test_a_killed_repartitioning_is_done_again(tmp_path, monkeypatch):
    checkpoint = begun(tmp_path)

    def killed(_record):
        raise KeyboardInterrupt

    broken = Checkpoint(tmp_path)
    monkeypatch.setattr(broken, "write", killed)
    with pytest.raises(KeyboardInterrupt):
        broken.open(5, [KEYED, ALONE])
    assert checkpoint.read().partitions == 2
    record = Checkpoint(tmp_path).open(3, [KEYED, ALONE])
    stores = [StateStore(checkpoint.locate_state(record, "keyed"), part) for part in range(3)]
    assert sum(len(store.load(1)) for store in stores) == len(KEYS)


def test_state_may_be_kept_elsewhere(tmp_path):
    checkpoint = Checkpoint(tmp_path / "here", f"file://{tmp_path}/there/")
    record = checkpoint.open(1, [KEYED])
    StateStore(checkpoint.locate_state(record, "keyed"), 0).save(0, [(b"k", b"v")])
    assert (tmp_path / "there" / "0" / "keyed" / "0" / "0.delta").exists()


def test_state_of_another_checkpoint_is_refused(tmp_path):
    there = f"file://{tmp_path}/there"
    one = Checkpoint(tmp_path / "one", there)
    record = one.open(1, [KEYED])
    StateStore(one.locate_state(record, "keyed"), 0).save(0, [(b"k", b"v")])
    for _ in range(2):  # what is refused leaves nothing that would be taken the next time
        with pytest.raises(StateError, match=r"state of another checkpoint than .*two"):
            Checkpoint(tmp_path / "two", there).open(1, [KEYED])
    assert Checkpoint(tmp_path / "one", there).open(1, [KEYED]) == record
    (tmp_path / "there" / "owner").unlink()  # as if killed before it was written
    assert Checkpoint(tmp_path / "one", there).open(1, [KEYED]) == record
    assert (tmp_path / "there" / "owner").read_text() == record.id


def test_a_query_killed_while_it_wrote_its_first_offsets_starts_again(tmp_path):
    checkpoint = Checkpoint(tmp_path)
    offsets = checkpoint.spark / "offsets"
    offsets.mkdir(parents=True)
    (offsets / ".0.630d85b7.tmp").write_bytes(b"")
    checkpoint.remove_unstarted_stream()
    assert not checkpoint.spark.exists()
    offsets.mkdir(parents=True)
    (offsets / "0").write_text("v1")
    (offsets / ".1.630d85b7.tmp").write_bytes(b"")
    checkpoint.remove_unstarted_stream()
    assert (offsets / "0").exists()


def test_the_range_of_a_batch_is_read_from_the_write_ahead_files(tmp_path):
    checkpoint = Checkpoint(tmp_path)
    record = checkpoint.open(1, [])
    (checkpoint.spark / "offsets").mkdir(parents=True)
    for batch_id, (end, clock) in enumerate([(2, 5), (3, 9)]):
        text = "v1\n{}\n" + json.dumps({"offsets": {"S": end}, "clock": clock})
        (checkpoint.spark / "offsets" / str(batch_id)).write_text(text)
    assert checkpoint.read_batch_range(record, 1, InputLogs({"S": ""})) == BatchRange(
        1, {"S": 2}, {"S": 3}, 5, 9
    )


def test_a_stream_continues_where_batches_over_history_ended(tmp_path):
    checkpoint = Checkpoint(tmp_path)
    record = checkpoint.open(1, [])
    record = type(record)(
        id=record.id, partitions=1, batches=4, offsets={"S": 7}, clock=70, pending=None
    )
    checkpoint.write(record)
    assert checkpoint.find_last_version(checkpoint.read()) == 3
    (checkpoint.spark / "offsets").mkdir(parents=True)
    text = "v1\n{}\n" + json.dumps({"offsets": {"S": 9}, "clock": 90})
    (checkpoint.spark / "offsets" / "0").write_text(text)
    assert checkpoint.read_batch_range(record, 0, InputLogs({"S": ""})) == BatchRange(
        4, {"S": 7}, {"S": 9}, 70, 90
    )


def test_committed_offsets_follow_what_is_committed(tmp_path):
    checkpoint = Checkpoint(tmp_path / "checkpoint", str(tmp_path / "there"))
    assert checkpoint.read_committed_offsets() == {}
    record = checkpoint.open(1, [])
    assert checkpoint.read_committed_offsets() == {}
    record = msgspec.structs.replace(record, batches=1, offsets={"S": 2})
    checkpoint.write(record)
    assert checkpoint.read_committed_offsets() == {"S": 2}
    pending = BatchRange(1, {"S": 1}, {"S": 2}, 0, 0)
    checkpoint.write(msgspec.structs.replace(record, pending=pending))
    assert checkpoint.read_committed_offsets() == {"S": 1}
    for folder, number in (("offsets", 0), ("commits", 0), ("offsets", 1)):
        (checkpoint.spark / folder).mkdir(parents=True, exist_ok=True)
        text = "v1\n{}\n" + json.dumps({"offsets": {"S": 7 + number}, "clock": 5})
        (checkpoint.spark / folder / str(number)).write_text(text)
    assert checkpoint.read_committed_offsets() == {"S": 7}
    checkpoint.remove()
    assert list(tmp_path.iterdir()) == []
    assert checkpoint.open(1, []).id != record.id


def test_a_torn_file_is_refused_by_name(tmp_path):
    Checkpoint(tmp_path).open(1, [])
    (tmp_path / "app.json").write_bytes(b"{")
    with pytest.raises(StateError, match=r"app\.json"):
        Checkpoint(tmp_path).open(1, [])
