"""Compile a fragment of a plan to a kernel: write its source, load it, wrap it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from edgewise.kernel import serialize
from edgewise.kernel.code_globals import CODE_GLOBALS
from edgewise.kernel.codegen.chain_steps import chain_of, stream_keys
from edgewise.kernel.codegen.fragment_builder import TAP, FragmentBuilder
from edgewise.kernel.codegen.fragment_source import write_source
from edgewise.kernel.codegen.sequence_steps import sequence_of
from edgewise.kernel.codegen.state_owners import layout_of
from edgewise.kernel.kernel import Kernel
from edgewise.kernel.runtime import FIRST_CELL, Runtime
from edgewise.plan.fragments import Fragment
from edgewise.plan.nodes import App

__all__ = ["TAP", "Kernel", "compile_kernel"]


def compile_kernel(
    app: App, fragment: Fragment, taps: Iterable[str] = (), *, as_sent: bool = False
) -> Kernel:
    """`taps` names queries whose own rows are wanted too, as the stream `@name`.

    `as_sent`: values may be of another type than their attribute, so any event may fail.
    """
    builder = FragmentBuilder(app, fragment, frozenset(taps), as_sent=as_sent)
    if _keeps_the_key(builder):
        builder = FragmentBuilder(app, replace(fragment, keys=()), builder.taps, as_sent=as_sent)
        builder.by_key = FIRST_CELL
    source = write_source(builder)
    rt = Runtime(keyed=builder.fragment.keyed)
    rt.guarded = any(builder.guarded(stream) for stream in builder.read())
    space = {**CODE_GLOBALS, **builder.writer.bound}
    exec(compile(source, f"<kernel {fragment.name}>", "exec"), space)  # noqa: S102  our own text
    feeders = space["build"](rt)
    lateness = tuple((s.name, s.lateness_ms) for s in app.streams if s.lateness_ms is not None)
    layout = layout_of(builder, fragment)
    plan_id = serialize.fingerprint(
        (layout.cells, layout.nodes, layout.inside, layout.keys, lateness)
    )
    return Kernel(app, source, feeders, rt, layout, plan_id, builder.by_key)


def _keeps_the_key(builder: FragmentBuilder) -> bool:
    """One query that holds its state by the fragment's own key: no state around it is needed."""
    if (
        not builder.fragment.keyed
        or len(builder.queries) > 1
        or builder.app.lateness_ms is not None
    ):
        return False
    [query] = builder.queries
    chain, sequence = chain_of(builder, query), sequence_of(builder, query)
    keys = stream_keys(chain) if chain else sequence.keys if sequence else {}
    return bool(keys) and {s: (k,) for s, k in keys.items()} == dict(builder.fragment.keys)
