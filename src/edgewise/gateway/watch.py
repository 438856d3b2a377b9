"""A task that ends by a fault says so: nobody awaits the loops of doors."""

from __future__ import annotations

import asyncio
import logging

from edgewise.gateway.stats import DoorStats

logger = logging.getLogger(__name__)


def watch(task: asyncio.Task[None], name: str, stats: DoorStats) -> asyncio.Task[None]:
    """The same task; its fault goes to the program's log and to `stats.failed`."""

    def ended(done: asyncio.Task[None]) -> None:
        if done.cancelled():
            return
        fault = done.exception()
        if fault is not None:
            stats.failed = f"stopped: {type(fault).__name__}: {fault}"
            logger.error("%s %s", name, stats.failed, exc_info=fault)

    task.add_done_callback(ended)
    return task
