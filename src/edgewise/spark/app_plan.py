"""Plan an app for Spark: its stages, and what about each of them never changes.

Found once, when an engine opens, so that a micro-batch of milliseconds does not walk the plan
again. Imports no PySpark. Used by `execution`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from edgewise.engines.batch.live_kernels import fingerprint_plan
from edgewise.plan.fragments import Fragment
from edgewise.plan.nodes import App
from edgewise.plan.rules.chain import split_into_stages
from edgewise.plan.rules.column_pruning import find_read_attributes
from edgewise.plan.rules.rewrite import rewrite
from edgewise.spark.choose import FragmentTraits, find_traits


@dataclass(frozen=True)
class SparkPlan:
    """`between` are the streams that a stage writes for a later one; `reads` and `traits` are by
    fragment.
    """

    app: App
    fragments: tuple[Fragment, ...]
    taps: tuple[str, ...]
    between: tuple[str, ...]
    reads: Mapping[str, Mapping[str, tuple[str, ...]]]
    traits: Mapping[str, FragmentTraits]
    fingerprint: bytes


def plan_app(app: App, taps: tuple[str, ...] = ()) -> SparkPlan:
    app = rewrite(app)
    fragments = split_into_stages(app)
    read = dict.fromkeys(name for f in fragments for name in f.inputs)
    inputs = {s.name for s in app.inputs}
    return SparkPlan(
        app=app,
        fragments=fragments,
        taps=taps,
        between=tuple(name for name in read if name not in inputs),
        reads={f.name: find_read_attributes(app, f) for f in fragments},
        traits={f.name: find_traits(app, f, taps) for f in fragments},
        fingerprint=fingerprint_plan(app, fragments, taps),
    )
