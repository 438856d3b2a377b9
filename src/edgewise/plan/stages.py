"""How a plan is carried out on Spark: its stages, their keys, their tasks, and why.

A fragment is a stage: everything between two shuffles. A chain whose queries have different keys
is cut into several (`plan.rules.chain`); where it cannot be, it runs on one task, and is said to.
"""

from __future__ import annotations

from dataclasses import dataclass

from edgewise.plan.fragments import Fragment
from edgewise.plan.nodes import App
from edgewise.plan.rules.chain import staged
from edgewise.plan.rules.stretch import batches_of

REAL_TIME = (
    "real-time mode does not fit: logs in files are a Python source, which it refuses; into Kafka "
    "it writes at least once, so after a failure rows would be there twice; the shortest floor is "
    "--trigger 0 (the default), below it --engine embedded"
)
SMALL = "small batches run in the driver, with the same kernels and no Spark job"
LARGE = (
    "large batches of logs that are files, with up to 8 partitions: every task reads what is its "
    "own, no shuffle; otherwise Spark shuffles by the key, and what is native runs in its own "
    "expressions"
)


@dataclass(frozen=True, slots=True)
class Stage:
    """`tasks` in words: how many there are and what decides it."""

    name: str
    key: str
    tasks: str
    why: str


def stages(app: App) -> tuple[Stage, ...]:
    return tuple(_stage(app, fragment) for fragment in staged(app))


def stage_lines(app: App) -> list[str]:
    """The block `explain` ends with."""
    lines = []
    for stage in stages(app):
        key = f"by {stage.key}, " if stage.key else ""
        why = f": {stage.why}" if stage.why else ""
        lines.append(f"stage {stage.name}: {key}{stage.tasks}{why}")
    lines += [SMALL, LARGE, REAL_TIME]
    return ["on Spark", *(f"├─ {line}" for line in lines[:-1]), f"└─ {lines[-1]}"]


def _stage(app: App, fragment: Fragment) -> Stage:
    if fragment.stateless:
        return Stage(fragment.name, "", "as many tasks as there are slices of input", "no state")
    if fragment.keyed:
        key = ", ".join(f"{'+'.join(names)} of {stream}" for stream, names in fragment.keys)
        return Stage(fragment.name, key, "one task per partition (--partitions)", "")
    if by := batches_of(app, fragment):
        tasks = f"one task per stretch of {by.attribute} (--partitions), one where it falls back"
        return Stage(fragment.name, "", tasks, "a batch that closed is forgotten")
    return Stage(fragment.name, "", "one task", _why(app, fragment))


def _why(app: App, fragment: Fragment) -> str:
    """With the keys that queries of one chain would have, where they differ."""
    own = {
        q.name: " and ".join(f.name for f in q.select.group_by)
        for q in app.queries
        if q.name in fragment.queries and q.select.group_by
    }
    if len(set(own.values())) < 2:
        return fragment.why
    each = ", ".join(f"{name} by {key}" for name, key in own.items())
    return f"{fragment.why} ({each}; one feeds the other)"
