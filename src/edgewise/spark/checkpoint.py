"""Read and write the checkpoint of an app on Spark: what it needs besides Spark's own files.

    <checkpoint>/app.json                  `CheckpointRecord`, replaced in one step
    <checkpoint>/state/<n>/<fragment>/     kernel state; generation n changes with --partitions
    <checkpoint>/spark/                    offsets and commits of the stream, by Spark
    <checkpoint>/staging/                  rows on their way from a task to the driver

State may be kept elsewhere (`--state`); there a file `owner` holds the id of its checkpoint.

Versions count batches: first those of batches over history, then the micro-batches of the stream,
which continues at the offset where the last batch ended:

    version       0   1   2 | 3   4   5 ...
    history       0   1   2 |                record.batches = 3
    stream                  | 0   1   2      Spark's batch id

Used by `execution`, and by the node to see how far an app has got.
"""

from __future__ import annotations

import json
import shutil
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import msgspec

from edgewise.engines.batch.inputs import InputLogs
from edgewise.engines.batch.job import BatchRange
from edgewise.engines.batch.partitioner import assign_key
from edgewise.engines.state.migrate import CHECKPOINT_FILES, require_own_checkpoint
from edgewise.engines.state.saver import SavePoint, StateSaver
from edgewise.engines.state.storage import LocalStorage, join_path, open_storage
from edgewise.engines.state.store import PartitionedState, repartition
from edgewise.errors import StateError
from edgewise.kernel import serialize as snapshot
from edgewise.kernel.codegen.state_owners import StateLayout
from edgewise.kernel.operators.reorder import HELD
from edgewise.kernel.state.queue_parts import find_owner
from edgewise.plan.fragments import Fragment

RECORD, SPARK, OWNER = CHECKPOINT_FILES["spark"], "spark", "owner"
Schemas = Mapping[str, tuple[str, ...]]  # names of attributes, by stream
NO_SCHEMAS: Schemas = MappingProxyType({})


class CheckpointRecord(msgspec.Struct, frozen=True, kw_only=True):
    """`id` tells the rows of this checkpoint from those of another on the same output logs."""

    id: str
    partitions: int
    generation: int = 0
    batches: int = 0  # over history, done: the version of the next one, or of the stream's first
    offsets: dict[str, int] = {}
    clock: int | None = None
    pending: BatchRange | None = msgspec.field(name="doing", default=None)  # over history, begun
    layouts: dict[str, StateLayout] = {}  # of the plan that the state belongs to; {} in old files


class Checkpoint:
    """`state` is where kernel state is kept, if not here: a path, or a URI that pyarrow knows."""

    def __init__(self, path: Path, state: str = "") -> None:
        self.path = path
        self.spark = path / SPARK
        self.staging = path / "staging"
        self.elsewhere = bool(state)
        self.state = state or str(path / "state")

    def open(
        self,
        partitions: int,
        fragments: Sequence[Fragment],
        schemas: Schemas = NO_SCHEMAS,
        migrate: Callable[[CheckpointRecord], CheckpointRecord] = lambda record: record,
    ) -> CheckpointRecord:
        """The record as it was left, or a new one. State that belongs to another plan is migrated,
        then with another number of partitions all of it is repartitioned.
        """
        require_own_checkpoint(self.path, "spark")
        fresh = not (self.path / RECORD).exists()
        if fresh:
            record = CheckpointRecord(id=uuid.uuid4().hex, partitions=partitions)  # noqa: TID251
        else:
            record = self.read()
        owned = not self.elsewhere or self._is_owned(record, fresh=fresh)
        if fresh:
            self.write(record)
        storage = open_storage(self.state)
        if not owned:
            storage.write(OWNER, record.id.encode())
        record = migrate(record)
        if record.partitions != partitions:
            record = self._repartition(record, partitions, fragments, schemas)
        for name in storage.names():
            if name.isdigit() and int(name) != record.generation:
                storage.inside(name).clear()
        return record

    def _is_owned(self, record: CheckpointRecord, *, fresh: bool) -> bool:
        """Whether state elsewhere is marked as ours; that of another checkpoint is refused."""
        storage = open_storage(self.state)
        names = storage.names()
        owner = storage.read(OWNER).decode() if OWNER in names else ""
        foreign = owner != record.id if owner else fresh and any(n.isdigit() for n in names)
        if foreign:
            raise StateError(
                f"{storage} holds the state of another checkpoint than {self.path}; give each app "
                "its own --state, or remove what is there to start again"
            )
        return bool(owner)

    def _repartition(
        self,
        record: CheckpointRecord,
        partitions: int,
        fragments: Sequence[Fragment],
        schemas: Schemas,
    ) -> CheckpointRecord:
        """Only the end is written down: a process that is killed does it again from the start."""
        moved = msgspec.structs.replace(
            record, partitions=partitions, generation=record.generation + 1
        )
        open_storage(self.state).inside(str(moved.generation)).clear()
        saved = self.read_save_point()
        version = self.find_last_version(record) if saved is None else saved.version
        for fragment in fragments if version >= 0 else ():
            if not fragment.stateless:
                old, new = (self._find_state(r, fragment) for r in (record, moved))
                repartition(old, new, version, HashRouter(fragment, schemas))
        self.write(moved)
        return moved

    def read(self) -> CheckpointRecord:
        try:
            return msgspec.json.decode((self.path / RECORD).read_bytes(), type=CheckpointRecord)
        except msgspec.DecodeError as why:
            raise StateError(f"{self.path / RECORD} is torn or not ours: {why}") from why

    def write(self, record: CheckpointRecord) -> None:
        LocalStorage(self.path).write(RECORD, msgspec.json.encode(record))

    def locate_state(self, record: CheckpointRecord, fragment: str) -> str:
        return join_path(self.state, str(record.generation), fragment)

    def find_last_version(self, record: CheckpointRecord) -> int:
        """The last version that will not be computed again, -1 for none."""
        commits = self.spark / "commits"
        done = [int(p.name) for p in commits.glob("*") if p.name.isdigit()]
        return record.batches + max(done, default=-1)

    def read_committed_offsets(self) -> dict[str, int]:
        """The offsets before which no event is needed again; empty without a checkpoint."""
        if not (self.path / RECORD).exists():
            return {}
        saved = self.read_save_point()
        if saved is not None:
            return saved.offsets
        record = self.read()
        last = self.find_last_version(record) - record.batches
        if last >= 0:
            offsets: dict[str, int] = self.read_offsets(last)["offsets"]
            return offsets
        return dict(record.pending.start) if record.pending else record.offsets

    def read_save_point(self) -> SavePoint | None:
        """The last batch whose state was saved; None where every batch saves its own."""
        return StateSaver(open_storage(self.state)).load()

    def find_saved(self, record: CheckpointRecord) -> SavePoint:
        """The last version whose state is in files; -1 for none."""
        saved = self.read_save_point()
        if saved is not None:
            return saved
        version = self.find_last_version(record)
        if version >= record.batches:
            last = self.read_offsets(version - record.batches)
            return SavePoint(version, last["offsets"], last["clock"])
        return SavePoint(version, record.offsets, record.clock or 0)

    def remove(self) -> None:
        """The next one starts from the beginning, under another id."""
        open_storage(self.state).clear()
        shutil.rmtree(self.path, ignore_errors=True)

    def remove_unstarted_stream(self) -> None:
        """Remove what a query left that was killed while it wrote its first offsets.

        It is half a file, from which Spark refuses to start. No batch was begun, so nothing needs
        it.
        """
        offsets = self.spark / "offsets"
        if offsets.exists() and not any(path.name.isdigit() for path in offsets.iterdir()):
            shutil.rmtree(self.spark)

    def read_batch_range(
        self, record: CheckpointRecord, batch_id: int, inputs: InputLogs
    ) -> BatchRange:
        """From Spark's own write-ahead file, which is there before a micro-batch runs."""
        end = self.read_offsets(batch_id)
        if batch_id:
            begin = self.read_offsets(batch_id - 1)
        elif record.offsets:
            begin = {"offsets": record.offsets, "clock": record.clock}
        else:
            earliest = inputs.earliest()
            begin = {"offsets": earliest, "clock": inputs.clock_at(earliest)}
        version = record.batches + batch_id
        # An app that changed may read other streams than the one that wrote the file.
        first = inputs.fill_missing(begin["offsets"])
        last = {stream: end["offsets"].get(stream, at) for stream, at in first.items()}
        return BatchRange(version, first, last, begin["clock"], end["clock"])

    def read_offsets(self, batch_id: int) -> dict[str, Any]:
        """Line 1 is the version, line 2 metadata, then a line per source: ours is the only one."""
        lines = (self.spark / "offsets" / str(batch_id)).read_text().splitlines()
        offset: dict[str, Any] = json.loads(lines[2])
        return offset

    def _find_state(self, record: CheckpointRecord, fragment: Fragment) -> PartitionedState:
        root = open_storage(self.locate_state(record, fragment.name))
        return PartitionedState(root, record.partitions if fragment.keyed else 1)


@dataclass(frozen=True, slots=True)
class HashRouter:
    """A `KeyRouter`: keys by their hash; events that wait to be put in order, each by its own."""

    fragment: Fragment
    schemas: Schemas

    def split(self, key: bytes, value: bytes, partitions: int) -> dict[int, bytes]:
        name = snapshot.unpack_key(find_owner(key))
        if name != HELD:
            return {assign_key(name, partitions): value}
        floor, held = snapshot.unpack(None, value)
        waiting: dict[int, list[Any]] = {target: [] for target in range(partitions)}
        for event in held:
            waiting[assign_key(self._find_key(event[2], event[-1]), partitions)].append(event)
        return {p: snapshot.repack(value, [floor, events]) for p, events in waiting.items()}

    def join(self, one: bytes, other: bytes) -> bytes:
        (floor, held), (also, more) = (snapshot.unpack(None, data) for data in (one, other))
        return snapshot.repack(one, [max(floor, also), sorted([*held, *more])])

    def _find_key(self, stream: str, row: tuple[Any, ...]) -> list[Any]:
        source = stream.removeprefix("!")  # a late event waits under the name of its fault stream
        names = self.schemas.get(source, ())
        return [row[names.index(name)] for name in self.fragment.key_of(source)]
