"""A kernel that was fed the log again equals the one that was in memory."""

import random

import pytest
from tests.support.random_batches import case

from edgewise.engines.batch.app_start import AppStartFinder
from edgewise.engines.batch.catch_up import CatchUp
from edgewise.engines.batch.inputs import InputLogs
from edgewise.engines.batch.job import BatchRange, Job
from edgewise.engines.batch.run import feed_kernel
from edgewise.engines.batch.select_rows import filter_rows
from edgewise.engines.state.saver import SavePoint
from edgewise.engines.state.store import StateStore
from edgewise.kernel.compile import compile_kernel
from edgewise.lang import compile_app
from edgewise.node.commands.replay import load_logs
from edgewise.node.data_dir import DataDirectory
from edgewise.plan.rules.keys import split_into_fragments


@pytest.mark.parametrize("seed", range(10))
def test_any_save_and_the_events_since_give_the_same_state(tmp_path, seed):
    text, events, _ = case(seed)
    app = compile_app(text).app
    layout = DataDirectory(tmp_path)
    load_logs(app, events, layout)
    inputs = InputLogs({s.name: str(layout.log_directory(s.name)) for s in app.inputs})
    fragments = split_into_fragments(app)
    dice = random.Random(seed)

    def build_job(fragment, batch, app_start=None):
        root = str(tmp_path / "state" / fragment.name)
        streams = tuple(inputs.paths)
        return Job(
            app, fragment, batch.batch_id, batch.clock, root, streams,
            fingerprint=b"", app_start=app_start,
        )  # fmt: skip

    def select(table, job, _):
        return filter_rows(table, job).to_batches()

    catch_up = CatchUp(app, fragments, inputs, build_job, select)
    first, last = inputs.earliest(), inputs.heads()
    middle = inputs.limit_end(first, last, dice.randint(1, 60))
    begin = SavePoint(-1, first, inputs.clock_at(first))
    clock = max(begin.clock, inputs.clock_at(middle))
    for fragment in fragments:
        if fragment.stateless:
            continue
        whole = compile_kernel(app, fragment)
        catch_up.feed(whole, fragment, 0, begin, last)
        half = compile_kernel(app, fragment)
        table = inputs.read_table(first, middle, begin.clock)
        batch = BatchRange(3, first, middle, begin.clock, clock)
        start = AppStartFinder(app, fragments).find(batch, inputs, table)
        job = build_job(fragment, batch, start)
        feed_kernel(half, job, select(table, job, 0))
        StateStore(job.state_root, 0).write_changes(3, list(half.changed()), -1)
        loaded, rows = catch_up.load(job, 0, SavePoint(3, middle, clock), last)
        assert rows == sum(last.values()) - sum(middle.values())
        assert dict(_states(loaded)) == dict(_states(whole))
    inputs.close()


def _states(kernel):
    """All states of a kernel, as entries of a fresh one would be."""
    kernel._rt.dirty.update(kernel._rt.keys)
    return [(key, value) for key, value in kernel.changed() if value is not None]
