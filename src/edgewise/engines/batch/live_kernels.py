"""Keep kernels with their state in memory between batches, and load them from files otherwise.

To load a kernel takes compiling its source and reading its state; to keep it takes memory, so the
number is bounded. A kept kernel is only used where it would equal one from the files: for the same
plan (by fingerprint), the same key partition, and exactly the state version that is asked for. A
batch that ran elsewhere, or twice, or for an app that was changed meanwhile, goes to the files.

Used by `run`, in Spark's workers, in its driver and in the embedded engine.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from types import CellType, CodeType, FunctionType
from typing import Any, Protocol

from edgewise.engines.batch.job import Job
from edgewise.engines.batch.open_stores import open_stores
from edgewise.engines.state.store import StateStore
from edgewise.errors import StateError
from edgewise.kernel import compile_kernel
from edgewise.kernel.compile import Kernel
from edgewise.kernel.serialize import fingerprint
from edgewise.kernel.state.queue_parts import LaterEntries
from edgewise.plan.fragments import Fragment
from edgewise.plan.nodes import App, StreamCall, handlers_of
from edgewise.plan.rules.map_expressions import find_calls

LIVE_KERNELS_MAX = 64  # kernels a process keeps between batches
CODE_DEPTH_MAX = 8  # functions inside functions; the fingerprint goes no deeper

StateVersion = tuple[int, int]  # batch id, and how many on-demand queries changed it afterwards
_Key = tuple[str, bytes, str, int]


class LoadKernel(Protocol):
    """Make the kernel with the state before a job: from files, or from files and the log."""

    def __call__(self, job: Job, key_partition: int, *, guarded: bool = False) -> Kernel: ...


class LiveKernels:
    """Kernels with the version of their state; the least recently used go.

    `load` makes those that are not kept. An engine whose batches do not save their state has
    kernels of its own, as many as it runs: their state is nowhere else.
    """

    def __init__(self, load: LoadKernel | None = None, limit: int = LIVE_KERNELS_MAX) -> None:
        self.load: LoadKernel = load or load_kernel
        self._limit = limit
        self._kernels: OrderedDict[_Key, tuple[StateVersion, Kernel]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._kernels)

    def take(self, job: Job, key_partition: int) -> Kernel:
        """A kernel with exactly the state after the batch before this one."""
        version, kernel = self._kernels.pop(_key(job, key_partition), (None, None))
        needed = (job.version - 1, job.revision)
        if kernel is not None and (job.fragment.stateless or version == needed):
            return kernel
        return self.load(job, key_partition)

    def keep(self, job: Job, key_partition: int, kernel: Kernel) -> None:
        self._kernels[_key(job, key_partition)] = ((job.version, job.revision), kernel)
        while len(self._kernels) > self._limit:
            self._kernels.popitem(last=False)

    def collect_changes(self, job: Job, key_partition: int) -> LaterEntries:
        """What changed in the state of the kernel that has run `job` since it was last saved.

        It goes to `encode_entries`, in any thread.
        """
        version, kernel = self._kernels.get(_key(job, key_partition), (None, None))
        if kernel is None or version != (job.version, job.revision):
            raise StateError(
                f"the kernel of '{job.fragment.name}' has not run batch {job.version}"
            )
        return kernel.collect_changed()


def _key(job: Job, key_partition: int) -> _Key:
    return (job.state_root, job.fingerprint, job.fragment.name, key_partition)


def load_kernel(job: Job, key_partition: int, *, guarded: bool = False) -> Kernel:
    """A new kernel with the state after the batch before this one, from its files.

    A `guarded` kernel counts an event that fails and goes on; it is slower.
    """
    kernel = compile_kernel(job.app, job.fragment, job.taps, as_sent=guarded)
    kernel.session = open_stores(kernel, job)
    if not job.fragment.stateless:
        state = StateStore(job.state_root, key_partition).load(job.version - 1)
        kernel.restore(state.items())
    if job.start is not None and job.version == 0:
        kernel.start(job.start)
    return kernel


def fingerprint_plan(app: App, fragments: Sequence[Fragment], taps: Sequence[str] = ()) -> bytes:
    """Equal for equal plans, with the code of functions that the app brings along.

    An engine computes it once: it takes a walk over the whole app.
    """
    bodies: list[Any] = [call.body for call in find_calls(app) if call.body is not None]
    handlers = [h for query in app.queries for h in handlers_of(query.input)]
    bodies += [h.procedure for h in handlers if isinstance(h, StreamCall) and h.procedure]
    code = [list(_describe_code(body)) for body in bodies]
    return fingerprint((app, tuple(fragments), tuple(taps), code))


def _describe_code(body: Any, depth: int = 0) -> Iterator[object]:
    """Two functions of one name, of which one was edited, differ in this.

    A bound value counts by its text; what that does not show, such as an edited module that the
    function calls, is not seen.
    """
    yield repr(body)
    if depth == CODE_DEPTH_MAX:
        return
    for function in _functions_of(body):
        code = function.__code__
        yield (code.co_code, code.co_names, function.__defaults__, function.__kwdefaults__)
        cells = [cell.cell_contents for cell in function.__closure__ or () if _is_filled(cell)]
        for inner in (*code.co_consts, *cells):
            yield list(_describe_code(inner, depth + 1))


def _functions_of(body: Any) -> list[Any]:
    """The function itself, or the methods of an object's class; a code object as a function."""
    if isinstance(body, CodeType):
        return [FunctionType(body, {}, closure=tuple(CellType() for _ in body.co_freevars))]
    if isinstance(body, FunctionType):
        return [body]
    return [method for method in vars(type(body)).values() if isinstance(method, FunctionType)]


def _is_filled(cell: CellType) -> bool:
    """A function that calls itself has an empty cell until it is bound to its name."""
    try:
        _ = cell.cell_contents
    except ValueError:
        return False
    return True
