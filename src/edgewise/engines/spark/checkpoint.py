"""What a checkpoint directory knows besides Spark's own files: who writes, how it is spread.

    <checkpoint>/app.json                  `Began`, replaced as a whole
    <checkpoint>/state/<n>/<fragment>/     kernel state, n counts changes of the partitions
    <checkpoint>/spark/                    offsets and commits of the stream, by Spark
    <checkpoint>/staging/                  rows on their way from a task to the driver

State may live elsewhere; there a file `owner` holds the id of the checkpoint that it belongs to.

Versions count batches: first those of batches over history, then the micro-batches of the stream,
which takes over at the offset where the last batch ended.
"""

from __future__ import annotations

import json
import shutil
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import msgspec

from edgewise.engines import keyspace
from edgewise.engines.carry import MARKS, demand_own
from edgewise.engines.homes import Home, LocalHome, below, home
from edgewise.engines.host import Cut
from edgewise.engines.inputs import Inputs
from edgewise.engines.kernel import snapshot
from edgewise.engines.kernel.order import HELD
from edgewise.engines.state import Spread, rehash
from edgewise.errors import StateError
from edgewise.plan.fragments import Fragment

APP, SPARK, OWNER = MARKS["spark"], "spark", "owner"
Schemas = Mapping[str, tuple[str, ...]]  # names of attributes, by stream
NO_SCHEMAS: Schemas = MappingProxyType({})


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
        self.elsewhere = bool(state)
        self.state = state or str(path / "state")

    def begin(
        self, partitions: int, fragments: Sequence[Fragment], schemas: Schemas = NO_SCHEMAS
    ) -> Began:
        """As it was left; with another number of partitions the keys move first."""
        demand_own(self.path, "spark")
        fresh = not (self.path / APP).exists()
        began = Began(id=uuid.uuid4().hex, partitions=partitions) if fresh else self.read()  # noqa: TID251
        owned = not self.elsewhere or self._is_owned(began, fresh=fresh)
        if fresh:
            self.write(began)
        if not owned:
            home(self.state).write(OWNER, began.id.encode())
        if began.partitions != partitions:
            began = self._move(began, partitions, fragments, schemas)
        for name in home(self.state).names():
            if name.isdigit() and int(name) != began.generation:
                home(self.state).inside(name).clear()
        return began

    def _is_owned(self, began: Began, *, fresh: bool) -> bool:
        """Whether state elsewhere is known as ours. That of another checkpoint is refused."""
        place = home(self.state)
        names = place.names()
        owner = place.read(OWNER).decode() if OWNER in names else ""
        foreign = owner != began.id if owner else fresh and any(n.isdigit() for n in names)
        if foreign:
            raise StateError(
                f"{place} holds the state of another checkpoint than {self.path}; give each app a "
                "place of its own, or remove what is there to start again"
            )
        return bool(owner)

    def _move(
        self, began: Began, partitions: int, fragments: Sequence[Fragment], schemas: Schemas
    ) -> Began:
        """A move that is killed is done again from the start: only its end is written down."""
        moved = msgspec.structs.replace(
            began, partitions=partitions, generation=began.generation + 1
        )
        home(self.state).inside(str(moved.generation)).clear()
        version = self.committed(began)
        for fragment in fragments if version >= 0 else ():
            if not fragment.stateless:
                old, new = (self._spread(b, fragment) for b in (began, moved))
                rehash(old, new, version, KeyPlaces(fragment, schemas))
        self.write(moved)
        return moved

    def read(self) -> Began:
        try:
            return msgspec.json.decode((self.path / APP).read_bytes(), type=Began)
        except msgspec.DecodeError as why:
            raise StateError(f"{self.path / APP} is torn or not ours: {why}") from why

    def write(self, began: Began) -> None:
        LocalHome(self.path).write(APP, msgspec.json.encode(began))

    def root(self, began: Began, fragment: str) -> str:
        return below(self.state, str(began.generation), fragment)

    def committed(self, began: Began) -> int:
        """The last version that will not be made again, -1 for none."""
        commits = self.spark / "commits"
        done = [int(p.name) for p in commits.glob("*") if p.name.isdigit()]
        return began.batches + max(done, default=-1)

    def reached(self) -> dict[str, int]:
        """The offsets up to which nothing will be asked for again; none where nothing began."""
        if not (self.path / APP).exists():
            return {}
        began = self.read()
        last = self.committed(began) - began.batches
        if last >= 0:
            offsets: dict[str, int] = self.offsets(last)["offsets"]
            return offsets
        return dict(began.doing.start) if began.doing else began.offsets

    def abandon(self) -> None:
        """Nothing of it is of use: the next one begins anew, under another id."""
        home(self.state).clear()
        shutil.rmtree(self.path, ignore_errors=True)

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

    def _spread(self, began: Began, fragment: Fragment) -> Spread:
        root: Home = home(self.root(began, fragment.name))
        return Spread(root, began.partitions if fragment.keyed else 1)


@dataclass(frozen=True, slots=True)
class KeyPlaces:
    """Keys by their hash; events that wait to be put in order, each by its own key."""

    fragment: Fragment
    schemas: Schemas

    def split(self, key: bytes, value: bytes, parts: int) -> dict[int, bytes]:
        name = snapshot.unpack_key(key)
        if name != HELD:
            return {keyspace.part_of(name, parts): value}
        floor, held = snapshot.unpack(None, value)
        waiting: dict[int, list[Any]] = {part: [] for part in range(parts)}
        for event in held:
            waiting[keyspace.part_of(self._key(event[2], event[-1]), parts)].append(event)
        return {p: snapshot.repack(value, [floor, events]) for p, events in waiting.items()}

    def join(self, one: bytes, other: bytes) -> bytes:
        (floor, held), (also, more) = (snapshot.unpack(None, data) for data in (one, other))
        return snapshot.repack(one, [max(floor, also), sorted([*held, *more])])

    def _key(self, stream: str, row: tuple[Any, ...]) -> list[Any]:
        of = stream.removeprefix("!")  # what is late waits under the name of its faults
        names = self.schemas.get(of, ())
        return [row[names.index(name)] for name in self.fragment.key_of(of)]
