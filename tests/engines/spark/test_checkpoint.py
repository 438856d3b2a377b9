"""A checkpoint goes on as it was left, also with another number of partitions."""

import json

import msgspec
import pytest

from edgewise.engines.host import Cut
from edgewise.engines.inputs import Inputs
from edgewise.engines.kernel import snapshot
from edgewise.engines.keyspace import part_of
from edgewise.engines.spark.checkpoint import Checkpoint
from edgewise.engines.state import StateStore
from edgewise.errors import StateError
from edgewise.plan.fragments import Fragment

KEYED = Fragment("keyed", ("q",), ("S",), keys=(("S", ("k",)),))
ALONE = Fragment("alone", ("r",), ("S",), why="it is")
KEYS = [(text,) for text in ("a", "b", "c", "d", None)]


def begun(tmp_path, batch_id=1):
    """Two partitions, batches 0 and 1 committed, a third one begun."""
    checkpoint = Checkpoint(tmp_path)
    began = checkpoint.begin(2, [KEYED, ALONE])
    for version in range(batch_id + 2):
        for part in range(2):
            mine = [k for k in KEYS if part_of(k, 2) == part]
            changed = [(snapshot.pack_key(k), str(version).encode()) for k in mine]
            StateStore(checkpoint.root(began, "keyed"), part).save(version, changed)
        alone = [(snapshot.pack_key(()), str(version).encode())]
        StateStore(checkpoint.root(began, "alone"), 0).save(version, alone)
    (checkpoint.spark / "commits").mkdir(parents=True)
    for version in range(batch_id + 1):
        (checkpoint.spark / "commits" / str(version)).touch()
    return checkpoint


@pytest.mark.parametrize("parts", [1, 3, 8])
def test_another_number_of_partitions_moves_the_keys_of_the_committed_batch(tmp_path, parts):
    checkpoint = begun(tmp_path)
    before = checkpoint.read()
    began = Checkpoint(tmp_path).begin(parts, [KEYED, ALONE])
    assert (began.partitions, began.id) == (parts, before.id)
    for key in KEYS:
        store = StateStore(checkpoint.root(began, "keyed"), part_of(key, parts))
        assert store.load(1)[snapshot.pack_key(key)] == b"1"
    assert list(StateStore(checkpoint.root(began, "alone"), 0).load(1).values()) == [b"1"]
    assert [p.name for p in (tmp_path / "state").iterdir()] == [str(began.generation)]


def test_a_move_that_was_killed_is_done_again(tmp_path, monkeypatch):
    checkpoint = begun(tmp_path)

    def killed(_began):
        raise KeyboardInterrupt

    broken = Checkpoint(tmp_path)
    monkeypatch.setattr(broken, "write", killed)
    with pytest.raises(KeyboardInterrupt):
        broken.begin(5, [KEYED, ALONE])
    assert checkpoint.read().partitions == 2
    began = Checkpoint(tmp_path).begin(3, [KEYED, ALONE])
    stores = [StateStore(checkpoint.root(began, "keyed"), part) for part in range(3)]
    assert sum(len(store.load(1)) for store in stores) == len(KEYS)


def test_state_may_live_elsewhere(tmp_path):
    checkpoint = Checkpoint(tmp_path / "here", f"file://{tmp_path}/there/")
    began = checkpoint.begin(1, [KEYED])
    StateStore(checkpoint.root(began, "keyed"), 0).save(0, [(b"k", b"v")])
    assert (tmp_path / "there" / "0" / "keyed" / "0" / "0.delta").exists()


def test_state_of_another_checkpoint_is_refused(tmp_path):
    there = f"file://{tmp_path}/there"
    one = Checkpoint(tmp_path / "one", there)
    began = one.begin(1, [KEYED])
    StateStore(one.root(began, "keyed"), 0).save(0, [(b"k", b"v")])
    for _ in range(2):  # what is refused leaves nothing that would be taken the next time
        with pytest.raises(StateError, match=r"state of another checkpoint than .*two"):
            Checkpoint(tmp_path / "two", there).begin(1, [KEYED])
    assert Checkpoint(tmp_path / "one", there).begin(1, [KEYED]) == began
    (tmp_path / "there" / "owner").unlink()  # as if killed before it was written
    assert Checkpoint(tmp_path / "one", there).begin(1, [KEYED]) == began
    assert (tmp_path / "there" / "owner").read_text() == began.id


def test_a_query_killed_while_it_wrote_down_its_first_batch_starts_again(tmp_path):
    checkpoint = Checkpoint(tmp_path)
    offsets = checkpoint.spark / "offsets"
    offsets.mkdir(parents=True)
    (offsets / ".0.630d85b7.tmp").write_bytes(b"")
    checkpoint.forget_unborn()
    assert not checkpoint.spark.exists()
    offsets.mkdir(parents=True)
    (offsets / "0").write_text("v1")
    (offsets / ".1.630d85b7.tmp").write_bytes(b"")
    checkpoint.forget_unborn()
    assert (offsets / "0").exists()


def test_the_cut_of_a_batch_is_read_from_the_write_ahead_files(tmp_path):
    checkpoint = Checkpoint(tmp_path)
    began = checkpoint.begin(1, [])
    (checkpoint.spark / "offsets").mkdir(parents=True)
    for batch_id, (end, clock) in enumerate([(2, 5), (3, 9)]):
        text = "v1\n{}\n" + json.dumps({"offsets": {"S": end}, "clock": clock})
        (checkpoint.spark / "offsets" / str(batch_id)).write_text(text)
    assert checkpoint.cut(began, 1, Inputs({})) == Cut(1, {"S": 2}, {"S": 3}, 5, 9)


def test_a_stream_goes_on_where_batches_over_history_ended(tmp_path):
    checkpoint = Checkpoint(tmp_path)
    began = checkpoint.begin(1, [])
    began = type(began)(
        id=began.id, partitions=1, batches=4, offsets={"S": 7}, clock=70, doing=None
    )
    checkpoint.write(began)
    assert checkpoint.committed(checkpoint.read()) == 3
    (checkpoint.spark / "offsets").mkdir(parents=True)
    text = "v1\n{}\n" + json.dumps({"offsets": {"S": 9}, "clock": 90})
    (checkpoint.spark / "offsets" / "0").write_text(text)
    assert checkpoint.cut(began, 0, Inputs({})) == Cut(4, {"S": 7}, {"S": 9}, 70, 90)


def test_how_far_it_got_is_what_is_committed(tmp_path):
    checkpoint = Checkpoint(tmp_path / "checkpoint", str(tmp_path / "there"))
    assert checkpoint.reached() == {}
    began = checkpoint.begin(1, [])
    assert checkpoint.reached() == {}
    began = msgspec.structs.replace(began, batches=1, offsets={"S": 2})
    checkpoint.write(began)
    assert checkpoint.reached() == {"S": 2}
    doing = Cut(1, {"S": 1}, {"S": 2}, 0, 0)
    checkpoint.write(msgspec.structs.replace(began, doing=doing))
    assert checkpoint.reached() == {"S": 1}
    for folder, number in (("offsets", 0), ("commits", 0), ("offsets", 1)):
        (checkpoint.spark / folder).mkdir(parents=True, exist_ok=True)
        text = "v1\n{}\n" + json.dumps({"offsets": {"S": 7 + number}, "clock": 5})
        (checkpoint.spark / folder / str(number)).write_text(text)
    assert checkpoint.reached() == {"S": 7}
    checkpoint.abandon()
    assert list(tmp_path.iterdir()) == []
    assert checkpoint.begin(1, []).id != began.id


def test_a_torn_file_is_refused_by_name(tmp_path):
    Checkpoint(tmp_path).begin(1, [])
    (tmp_path / "app.json").write_bytes(b"{")
    with pytest.raises(StateError, match=r"app\.json"):
        Checkpoint(tmp_path).begin(1, [])
