"""Choose how Spark runs a fragment over a batch: a pure function, which `explain` prints too.

Every choice gives the same rows; they differ in what they cost. On two cores, measured:

    in the driver   no Spark job at all, which is most of the time of a small batch
    log scan        each task reads the whole batch from the log files and takes its own keys: the
                    rows never enter the JVM, but the batch is read once per task (SCANS_MAX)
    time slices     a log scan of windows by event time, which need no key to be divided
    stage scan      a log scan of the rows of an earlier stage, from a file
    native          a fragment without state in Spark's own expressions
    shuffle         Spark reads the batch once and sends every row to the task of its key

Used by `execution` for each fragment and batch, and by `edgewise explain`. Imports no PySpark, so
that `explain` starts no JVM.
"""

from __future__ import annotations

from dataclasses import dataclass

from edgewise.engines.state.save_schedule import INTERVAL_S
from edgewise.errors import SetupError
from edgewise.kernel import compile_kernel
from edgewise.plan.fragments import Fragment
from edgewise.plan.nodes import App
from edgewise.plan.rules.chain import split_into_stages
from edgewise.plan.rules.native_spark import Projection, build_projections
from edgewise.plan.rules.rewrite import rewrite
from edgewise.plan.rules.sliceable_windows import find_time_batch_window

SMALL_BATCH_ROWS = 50_000  # up to here the driver is faster than a Spark job
SCANS_MAX = 8  # tasks that each read the whole batch; with more a shuffle is faster
PARTITIONS_MAX = 1024


@dataclass(frozen=True, slots=True)
class SparkConfig:
    partitions: int = 2
    rows_max: int = 1_000_000  # per micro-batch
    history_rows_max: int = 4_000_000  # per batch over history
    small_batch_rows: int = SMALL_BATCH_ROWS
    trigger_ms: int = 0  # 0: the next batch starts when the last one is done
    save_interval_s: float = INTERVAL_S  # between saves of state; 0: after each batch
    state: str = ""  # where kernel state is kept, a path or URI; '': in the checkpoint

    def validate(self) -> None:
        if not 1 <= self.partitions <= PARTITIONS_MAX:
            raise SetupError(f"partitions must be 1 to {PARTITIONS_MAX}, not {self.partitions}")


@dataclass(frozen=True, slots=True)
class FragmentTraits:
    """What about a fragment decides how it runs; found once, it takes a look at its queries."""

    keyed: bool
    stateless: bool
    has_kernel: bool = True  # False where a function exists as a Spark expression only
    sliceable: bool = False  # by event time (`plan.rules.sliceable_windows`)
    projections: tuple[Projection, ...] = ()  # the fragment in Spark's expressions, if it has one


@dataclass(frozen=True, slots=True)
class BatchTraits:
    """What about a batch decides how a fragment runs over it."""

    rows: int
    in_files: bool = True  # its logs are files that the tasks can read; False: Kafka
    from_stage: bool = False  # it has the rows of an earlier stage, not of the input logs


@dataclass(frozen=True, slots=True)
class InDriver:
    partitions: int

    def __str__(self) -> str:
        return f"in the driver, {_count(self.partitions, 'key partition')}"


@dataclass(frozen=True, slots=True)
class LogScan:
    tasks: int

    def __str__(self) -> str:
        return f"log scan, {_count(self.tasks, 'task')}"


@dataclass(frozen=True, slots=True)
class TimeSlices:
    tasks: int

    def __str__(self) -> str:
        return f"time slices, {_count(self.tasks, 'task')}; one where times do not ascend"


@dataclass(frozen=True, slots=True)
class StageScan:
    partitions: int

    def __str__(self) -> str:
        return f"scan of the earlier stage's rows, {_count(self.partitions, 'task')}"


@dataclass(frozen=True, slots=True)
class Native:
    projections: tuple[Projection, ...]

    def __str__(self) -> str:
        return "in Spark's own expressions"


@dataclass(frozen=True, slots=True)
class Shuffle:
    partitions: int

    def __str__(self) -> str:
        return f"shuffle, {_count(self.partitions, 'task')}"


Execution = InDriver | LogScan | TimeSlices | StageScan | Native | Shuffle


def choose(fragment: FragmentTraits, batch: BatchTraits, config: SparkConfig) -> Execution:
    """The first that fits, from the cheapest on."""
    partitions = config.partitions if fragment.keyed else 1
    small = batch.rows <= config.small_batch_rows
    can_scan = fragment.has_kernel and batch.in_files and partitions <= SCANS_MAX
    if small and fragment.has_kernel:
        return InDriver(partitions)
    if can_scan and batch.from_stage:
        return StageScan(partitions)
    if can_scan and fragment.sliceable and 1 < config.partitions <= SCANS_MAX:
        return TimeSlices(config.partitions)
    if can_scan:
        return LogScan(config.partitions if fragment.stateless else partitions)
    if fragment.projections:
        return Native(fragment.projections)
    return Shuffle(partitions)


def find_traits(app: App, fragment: Fragment, taps: tuple[str, ...] = ()) -> FragmentTraits:
    """`taps` want the rows of single queries, which only a kernel has."""
    native = build_projections(app, fragment) if fragment.stateless and not taps else []
    return FragmentTraits(
        keyed=fragment.keyed,
        stateless=fragment.stateless,
        has_kernel=not native or _has_kernel(app, fragment),
        sliceable=not taps and find_time_batch_window(app, fragment) is not None,
        projections=tuple(native),
    )


def _has_kernel(app: App, fragment: Fragment) -> bool:
    try:
        compile_kernel(app, fragment)
    except SetupError:
        return False
    return True


def explain_choices(
    app: App, config: SparkConfig, *, in_files: bool = True
) -> dict[str, tuple[str, ...]]:
    """By stage, what `choose` returns for small batches and for large ones, in words."""
    app = rewrite(app)
    inputs = {s.name for s in app.inputs}
    found: dict[str, tuple[str, ...]] = {}
    for fragment in split_into_stages(app):
        traits = find_traits(app, fragment)
        from_stage = not set(fragment.inputs) <= inputs
        limit = config.small_batch_rows
        small, large = (
            choose(traits, BatchTraits(rows, in_files, from_stage), config)
            for rows in (limit, limit + 1)
        )
        if small == large:
            found[fragment.name] = (f"all batches: {large}",)
        else:
            lines = (f"batches up to {limit:,} rows: {small}", f"larger batches: {large}")
            found[fragment.name] = lines
    return found


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
