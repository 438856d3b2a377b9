"""What a checkpoint directory knows besides Spark's own files: who writes, how it is spread.

    <checkpoint>/app.json                  `Began`, replaced as a whole
    <checkpoint>/state/<n>/<fragment>/     kernel state, n counts changes of the partitions
    <checkpoint>/spark/                    offsets and commits of the stream, by Spark

Versions count batches: first those of batches over history, then the micro-batches of the stream,
which takes over at the offset where the last batch ended.
"""

from __future__ import annotations

import json
import shutil
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from edgewise.engines import keyspace
from edgewise.engines.homes import Home, LocalHome, home
from edgewise.engines.host import Cut
from edgewise.engines.inputs import Inputs
from edgewise.engines.kernel import snapshot
from edgewise.engines.kernel.order import HELD
from edgewise.engines.state import Spread, rehash
from edgewise.errors import StateError
from edgewise.plan.fragments import Fragment

APP, SPARK = "app.json", "spark"


class Began(msgspec.Struct, frozen=True, kw_only=True):
    """`doing` is a batch over history that was written down and is not known to be done."""

    id: str
    partitions: int
    generation: int = 0
    batches: int = 0  # over history, done: the version of the next one, or of the stream's first
    offsets: dict[str, int] = {}
    clock: int | None = None
    doing: Cut | None = None


class Checkpoint:
    """`state` says where kernel state lives, if not here: a path, or a URI that pyarrow knows."""

    def __init__(self, path: Path, state: str = "") -> None:
        self.path = path
        self.spark = path / SPARK
        self.state = state.rstrip("/") or str(path / "state")

    def begin(self, partitions: int, fragments: Sequence[Fragment]) -> Began:
        """As it was left; with another number of partitions the keys move first."""
        if not (self.path / APP).exists():
            self.write(Began(id=uuid.uuid4().hex, partitions=partitions))  # noqa: TID251
        began = self.read()
        if began.partitions == partitions:
            return began
        keyed = [f for f in fragments if f.keyed]
        moved = msgspec.structs.replace(
            began, partitions=partitions, generation=began.generation + 1
        )
        version = self.committed(began)
        if version >= 0:
            for fragment in fragments:
                if not fragment.stateless:
                    old, new = (
                        self._spread(b, fragment, fragment in keyed) for b in (began, moved)
                    )
                    rehash(old, new, version, _part_of)
        self.write(moved)
        home(self.state).inside(str(began.generation)).clear()
        return moved

    def read(self) -> Began:
        try:
            return msgspec.json.decode((self.path / APP).read_bytes(), type=Began)
        except msgspec.DecodeError as why:
            raise StateError(f"{self.path / APP} is torn or not ours: {why}") from why

    def write(self, began: Began) -> None:
        LocalHome(self.path).write(APP, msgspec.json.encode(began))

    def root(self, began: Began, fragment: str) -> str:
        return f"{self.state}/{began.generation}/{fragment}"

    def committed(self, began: Began) -> int:
        """The last version that will not be made again, -1 for none."""
        commits = self.spark / "commits"
        done = [int(p.name) for p in commits.glob("*") if p.name.isdigit()]
        return began.batches + max(done, default=-1)

    def forget_unborn(self) -> None:
        """A query killed while it wrote down its first batch leaves half a file, and Spark refuses
        to start from it. No batch was begun, so nothing depends on what is there.
        """
        offsets = self.spark / "offsets"
        if offsets.exists() and not any(path.name.isdigit() for path in offsets.iterdir()):
            shutil.rmtree(self.spark)

    def cut(self, began: Began, batch_id: int, inputs: Inputs) -> Cut:
        """From Spark's own write-ahead file, which is there before a batch runs."""
        end = self.offsets(batch_id)
        if batch_id:
            begin = self.offsets(batch_id - 1)
        elif began.offsets:
            begin = {"offsets": began.offsets, "clock": began.clock}
        else:
            earliest = inputs.earliest()
            begin = {"offsets": earliest, "clock": inputs.clock(earliest)}
        version = began.batches + batch_id
        return Cut(version, begin["offsets"], end["offsets"], begin["clock"], end["clock"])

    def offsets(self, batch_id: int) -> dict[str, Any]:
        """Line 1 is the version, line 2 metadata, then a line per source: ours is the only one."""
        lines = (self.spark / "offsets" / str(batch_id)).read_text().splitlines()
        offset: dict[str, Any] = json.loads(lines[2])
        return offset

    def _spread(self, began: Began, fragment: Fragment, keyed: bool) -> Spread:
        root: Home = home(self.root(began, fragment.name))
        return Spread(root, began.partitions if keyed else 1)


def _part_of(key: bytes, parts: int) -> int:
    if snapshot.unpack_key(key) == HELD:
        raise StateError(
            "events wait to be put in order, each in its partition: go on with the number of "
            "partitions as it was"
        )
    return keyspace.part_of(snapshot.unpack_key(key), parts)
