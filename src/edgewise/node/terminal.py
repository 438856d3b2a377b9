"""What a person sees while things start: a step a line, with the elapsed time."""

from __future__ import annotations

import sys
import time
from typing import TextIO


class Steps:
    def __init__(self, out: TextIO = sys.stderr) -> None:
        self._began = time.monotonic()
        self._out = out

    def say(self, part: str, text: str) -> None:
        elapsed = time.monotonic() - self._began
        print(f"{elapsed:6.1f}s  {part:<8} {text}", file=self._out, flush=True)
