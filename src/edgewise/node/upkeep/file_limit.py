"""Keep a node below the number of files and connections that the system allows, and warn near it.

At the limit the system drops new connections without a word to the program, and no log or lease
can be opened either: so the ports take only as many connections as leave descriptors for these.
Used by `config`, `run` and `serve`.
"""

from __future__ import annotations

import asyncio
import os
import resource
from collections.abc import Callable
from pathlib import Path

CHECK_EVERY_S = 2.0
WARN_SHARE = 0.9
CALM_SHARE = 0.8  # below it the warning is over
RESERVED_FILES = 48  # of logs, lease, engine and edge workers
CONNECTIONS_MIN = 4  # of one port, whatever the limit is
OPEN_FILES = Path("/proc/self/fd")  # Linux; elsewhere nothing is checked


class FileLimit:
    """`describe` returns a line when the state changes, else ''."""

    def __init__(self) -> None:
        self._warned = False

    def describe(self, used: int, limit: int) -> str:
        if not self._warned and used >= limit * WARN_SHARE:
            self._warned = True
            return (
                f"{used} of {limit} files and connections are open: at the limit new callers are "
                "dropped; raise it with `ulimit -n`"
            )
        if self._warned and used < limit * CALM_SHARE:
            self._warned = False
            return f"{used} of {limit} files and connections are open"
        return ""


def raise_file_limit() -> None:
    """To what the system lets this process have."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def bound_connections(wanted: int, limit: int | None = None) -> int:
    """Connections that one of a node's two ports may have; `limit` is that of open files."""
    if limit is None:
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return min(wanted, max(CONNECTIONS_MIN, (limit - RESERVED_FILES) // 2))


async def watch_file_limit(say: Callable[[str], None]) -> None:
    """Until the task is cancelled."""
    state = FileLimit()
    while (used := count_open_files()) is not None:
        if line := state.describe(used, resource.getrlimit(resource.RLIMIT_NOFILE)[0]):
            say(line)
        await asyncio.sleep(CHECK_EVERY_S)


def count_open_files() -> int | None:
    """None where the system does not tell."""
    try:
        return len(os.listdir(OPEN_FILES))  # noqa: PTH208  names are enough
    except FileNotFoundError:
        return None
    except OSError:  # no descriptor is left to read the directory with
        return resource.getrlimit(resource.RLIMIT_NOFILE)[0]
