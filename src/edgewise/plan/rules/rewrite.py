"""List the rewrite rules in the order in which they are applied.

Every engine and `explain` start with `rewrite`, so what is explained is what runs.
"""

from __future__ import annotations

from collections.abc import Callable

from edgewise.plan.nodes import App
from edgewise.plan.rules.constant_folding import fold_constants
from edgewise.plan.rules.filter_pushdown import push_filters

RULES: tuple[Callable[[App], App], ...] = (fold_constants, push_filters)


def rewrite(app: App) -> App:
    """An app that gives the same rows with less work."""
    for rule in RULES:
        app = rule(app)
    return app
