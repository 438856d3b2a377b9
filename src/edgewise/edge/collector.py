"""Python's garbage collector in a process that serves: no long stop because of what never goes.

What is there before the first client (modules, schemas, plans) is a few hundred thousand objects,
and a full collection looks at each. Frozen, they are not looked at again; what sessions leave
behind is small and young, and is collected as before.
"""

from __future__ import annotations

import gc

THRESHOLDS = (1_000, 20, 50)  # young, middle, old: full collections come seldom


def calm() -> None:
    """Once, when everything that stays is there."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
