"""How a plan is carried out on Spark: its stages, their keys, their tasks, and why.

A fragment is a stage: everything between two shuffles. A chain whose queries have different keys
is cut into several (`plan.rules.chain`); where it cannot be, it runs on one task, and is said to.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from edgewise.plan.fragments import Fragment
from edgewise.plan.nodes import App
from edgewise.plan.rules.chain import split_into_stages
from edgewise.plan.rules.sliceable_windows import find_time_batch_window

NO_CHOICES: Mapping[str, Sequence[str]] = MappingProxyType({})
REAL_TIME = (
    "real-time mode does not fit: logs in files are a Python source, which it refuses; into Kafka "
    "it writes at least once, so after a failure rows would be there twice; the shortest floor is "
    "--trigger 0 (the default), below it --engine embedded"
)


@dataclass(frozen=True, slots=True)
class Stage:
    """`tasks` in words: how many there are and what decides it."""

    name: str
    key: str
    tasks: str
    why: str


def describe_stages(app: App) -> tuple[Stage, ...]:
    return tuple(_describe_stage(app, fragment) for fragment in split_into_stages(app))


def format_stages(app: App, choices: Mapping[str, Sequence[str]] = NO_CHOICES) -> list[str]:
    """The block `explain` ends with; `choices` has lines by stage: how Spark runs its batches."""
    lines = ["on Spark"]
    for stage in describe_stages(app):
        key = f"by {stage.key}, " if stage.key else ""
        why = f": {stage.why}" if stage.why else ""
        lines.append(f"├─ stage {stage.name}: {key}{stage.tasks}{why}")
        own = choices.get(stage.name, ())
        branches = ["├─"] * (len(own) - 1) + ["└─"]
        lines += [f"│  {branch} {text}" for branch, text in zip(branches, own, strict=False)]
    return [*lines, f"└─ {REAL_TIME}"]


def _describe_stage(app: App, fragment: Fragment) -> Stage:
    if fragment.stateless:
        return Stage(fragment.name, "", "as many tasks as there are slices of input", "no state")
    if fragment.keyed:
        key = ", ".join(f"{'+'.join(names)} of {stream}" for stream, names in fragment.keys)
        return Stage(fragment.name, key, "one task per partition (--partitions)", "")
    if by := find_time_batch_window(app, fragment):
        tasks = (
            f"one task per time slice of {by.attribute} (--partitions), one where it falls back"
        )
        return Stage(fragment.name, "", tasks, "a batch that closed is forgotten")
    return Stage(fragment.name, "", "one task", _explain_one_task(app, fragment))


def _explain_one_task(app: App, fragment: Fragment) -> str:
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
