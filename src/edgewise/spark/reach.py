"""Check, before the first batch, that executors reach what their tasks will need.

An executor on another machine may have a disk of its own: a task would find no log, or keep state
where the next task does not look, and that shows only after rows were committed. So the driver
leaves a mark in each directory that tasks use, and a few tasks on every executor look for it. It
costs one small job at the start, which also starts the Python workers. A URI needs no mark; that
it can be reached is checked as tasks will reach it. Used by the node.
"""

from __future__ import annotations

import secrets
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from edgewise.engines.state.storage import Storage, open_storage
from edgewise.errors import EdgewiseError, Unreachable
from edgewise.log.locations import parse_kafka_location
from edgewise.spark.masters import Master

MARK = ".reach-"
TASKS_PER_CORE = 3  # so that each executor gets some, though Spark decides which
TASKS_MAX = 256
REPORTED_MAX = 3  # hosts in a message


@dataclass(frozen=True, slots=True)
class Need:
    """A directory or URI that tasks use; `fix` is what makes it reachable."""

    where: str
    what: str
    fix: str


def list_needs(logs: Mapping[str, str], state: str, staging: Path) -> list[Need]:
    """What tasks use: input logs in files and what goes with them, and the state."""
    files = {name: at for name, at in logs.items() if not parse_kafka_location(at)[0]}
    shared = "put them where all machines find them: --log kafka://host:port/PREFIX, or --log DIR "
    shared += "on a disk that every executor mounts under the same path"
    needs = [Need(at, f"the log of {name}", shared) for name, at in files.items()]
    if files:
        needs.append(Need(str(staging), "the directory for results of tasks", shared))
    fix = "give --state a URI that every executor reaches, such as s3://bucket/path or hdfs://..."
    needs.append(Need(state, "the state of queries", fix))
    return needs


def require_reach(spark: SparkSession, master: Master, needs: Sequence[Need]) -> None:
    """Unreachable where an executor does not find what its tasks need."""
    if not master.elsewhere:
        return
    mark = MARK + secrets.token_hex(8)
    with ExitStack() as stack:
        for need in needs:
            storage = open_storage(need.where)
            storage.write(mark, b"")
            stack.callback(_remove, storage, mark)
        found = _ask_executors(spark, mark, [need.where for need in needs])
    for number, need in enumerate(needs):
        hosts = sorted({host for host, missing in found if number in missing})
        if hosts:
            names = ", ".join(hosts[:REPORTED_MAX])
            raise Unreachable(
                f"{need.what} is in {need.where}, which executors on {names} do not reach; "
                f"{need.fix}"
            )


def _ask_executors(
    spark: SparkSession, mark: str, places: list[str]
) -> list[tuple[str, tuple[int, ...]]]:
    """By task, its host and the numbers of the places where it saw no mark."""

    def look(_numbers: Any) -> Iterator[tuple[str, tuple[int, ...]]]:
        missing = [n for n, place in enumerate(places) if not find_mark(place, mark)]
        yield socket.gethostname(), tuple(missing)

    context = spark.sparkContext
    tasks = min(TASKS_MAX, max(2, context.defaultParallelism) * TASKS_PER_CORE)
    return context.parallelize(range(tasks), tasks).mapPartitions(look).collect()


def find_mark(place: str, mark: str) -> bool:
    """Whether this process sees the mark, and can write there too."""
    try:
        storage = open_storage(place)
        if mark not in storage.names():
            return False
        storage.write(f"{mark}-{secrets.token_hex(4)}", b"")
    except (EdgewiseError, OSError):
        return False
    return True


def _remove(storage: Storage, mark: str) -> None:
    """The driver's mark and those of the tasks."""
    for name in storage.names():
        if name.startswith(mark):
            storage.remove(name)
