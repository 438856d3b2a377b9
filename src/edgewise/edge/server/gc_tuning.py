"""Tune Python's garbage collector for a process that serves, so that it never stops for long.

What is there before the first client (modules, schemas, plans) is a few hundred thousand objects,
and a full collection visits each. Frozen, they are not visited again. Sessions and connections
leave no cycles behind, so their memory comes back without a collection; a full one is for what
other code may leave, and comes once in `OLD_MAX` new objects that outlived the young ones. Nodes
call it once.
"""

from __future__ import annotations

import gc

YOUNG, MIDDLE = 1_000, 10  # objects, and then looks at the young, until the next look
OLD_MAX = 2_500_000  # ten thousand sessions with twenty topics each make a third of that
THRESHOLDS = (YOUNG, MIDDLE, OLD_MAX // (YOUNG * MIDDLE))


def tune_collector() -> None:
    """Once, when everything that stays is there."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
