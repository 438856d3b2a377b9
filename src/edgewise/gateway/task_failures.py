"""Report the failure of a background task of a source or sink.

Nobody awaits these tasks, so without this an exception would stop a source silently. Used by
`source_writer` and `sink_reader`.
"""

from __future__ import annotations

import asyncio
import logging

from edgewise.gateway.stats import ConnectorStats

logger = logging.getLogger(__name__)


def report_failure(
    task: asyncio.Task[None], name: str, stats: ConnectorStats
) -> asyncio.Task[None]:
    """Returns the task; its exception goes to the program's log and to `stats.failed`."""

    def on_done(done: asyncio.Task[None]) -> None:
        if done.cancelled():
            return
        error = done.exception()
        if error is not None:
            stats.failed = f"stopped: {type(error).__name__}: {error}"
            logger.error("%s %s", name, stats.failed, exc_info=error)

    task.add_done_callback(on_done)
    return task
