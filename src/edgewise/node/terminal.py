"""Print what a node does, one line per step, with the time since it started.

Used by everything in a node that a person should see.
"""

from __future__ import annotations

import sys
import time
from typing import TextIO


class Terminal:
    def __init__(self, out: TextIO = sys.stderr) -> None:
        self._started_s = time.monotonic()
        self._out = out

    def say(self, part: str, text: str) -> None:
        elapsed = time.monotonic() - self._started_s
        print(f"{elapsed:6.1f}s  {part:<8} {text}", file=self._out, flush=True)
