"""Write partitions: find the instance of each key, create it when first seen, pass the chunk on.

State: a dict from the key to the state of the instance, in one cell outside. An event without a
key is dropped; with ranges it goes to every range it satisfies. A stream that the partition does
not name goes to all instances there are. With a limit of keys, a second cell holds them in the
order of their last event: the one that was idle longest is freed for a new one.
"""

from __future__ import annotations

from collections.abc import Callable

from edgewise.kernel.codegen.expr_text import ExprWriter
from edgewise.kernel.codegen.fragment_builder import FragmentBuilder, StateScope
from edgewise.kernel.codegen.row_layout import RowLayout, keys_of
from edgewise.plan.exprs import Expr
from edgewise.plan.nodes import PartitionKey, Query, StateLimit, streams_of


def write_partition(
    builder: FragmentBuilder, scope: StateScope, entries: Callable[[Query, str], list[str]]
) -> None:
    """`entries` gives the functions of a query that take a chunk of a stream."""
    w, partition = builder.writer, scope.partition
    assert partition is not None
    builder.own(f"partition {partition.name}")
    queries = [q for q in builder.queries if q.partition == partition.name]
    cell = builder.root.cell("{}")
    inner = [s for s in builder.read() if any(s in streams_of(q.input) for q in queries)]
    for stream in inner:
        w.line()
        with w.block(f"def {builder.stream_name(stream, partition.name)}(S, chunk)"):
            for query in queries:
                if stream in streams_of(query.input):
                    for entry in entries(query, stream):
                        w.line(f"{entry}(S, chunk)")
            w.line("return")
    _instance(builder, scope, cell)
    for stream in inner:
        if not stream.startswith("#"):
            _route(builder, scope, stream, cell)


def _instance(builder: FragmentBuilder, scope: StateScope, cell: int) -> None:
    w, name, partition = builder.writer, scope.name, scope.partition
    assert partition is not None
    w.line()
    limits = partition.state or StateLimit()
    idle, limit = limits.idle_ms, limits.limit
    seen = scope.cell("0") if idle is not None else 0
    recent = builder.root.cell("OrderedDict()") if limit is not None else 0
    with w.block(f"def {name}_instance(root, key)"):
        w.line(f"S = root[{cell}].get(key)")
        if limit is not None:  # keys in the order of their last event
            w.line(f"recent = root[{recent}]")
            w.line("recent[key] = None")
            w.line("recent.move_to_end(key)")
        with w.block("if S is None"):
            w.line(f"S = root[{cell}][key] = [{{}}, root[1], {', '.join(scope.fresh)}]")
            for line in scope.created:
                w.line(line)
            if idle is not None:
                w.line(f"rt.arm(S, {builder.next_node}, rt.now + {idle}, payload=key)")
            if limit is not None:
                with w.block(f"if len(recent) > {limit}"):
                    w.line(f"{name}_free(root, next(iter(recent)))")
        if idle is not None:
            w.line(f"S[{seen}] = rt.now")
        w.line("return S")
    w.line(f"rt.nested[{cell}] = {name}_instance")
    if partition.state is not None:
        with w.block(f"def {name}_free(root, key)"):
            w.line(f"root[{cell}].pop(key)[0].clear()")
            if limit is not None:
                w.line(f"del root[{recent}][key]")
            w.line(f"rt.drop({partition.name!r})")
    if idle is not None:
        with w.block(f"def {name}_idle(S, due, key)"):
            with w.block(f"if S[{seen}] + {idle} <= due"):
                w.line(f"{name}_free(rt.root, key)")
            with w.block("else"):
                w.line(f"rt.arm(S, {builder.next_node}, S[{seen}] + {idle}, payload=key)")
        builder.node(f"{name}_idle")


def _route(builder: FragmentBuilder, scope: StateScope, stream: str, cell: int) -> None:
    w, name, partition = builder.writer, scope.name, scope.partition
    assert partition is not None
    key = next((k for k in partition.keys if k.stream == stream), None)
    inside = builder.stream_name(stream, partition.name)
    w.line()
    with w.block(f"def {inside}_route(root, chunk)"):
        if key is None:
            with w.block(f"for S in list(root[{cell}].values())"):
                w.line(f"{inside}(S, chunk)")
            return
        w.line("last = None")
        w.line("held = []")
        with w.block("for event in chunk"):
            w.line("_, ts, row = event")
            for text, guard in _keys(builder, key, stream):
                w.line(f"key = {text}")
                with w.block(f"if {guard}"):
                    with w.block("if held and key != last"):
                        w.line(f"{inside}({name}_instance(root, last), held)")
                        w.line("held = []")
                    w.line("last = key")
                    w.line("held.append(event)")
        with w.block("if held"):
            w.line(f"{inside}({name}_instance(root, last), held)")


def _keys(builder: FragmentBuilder, key: PartitionKey, stream: str) -> list[tuple[str, str]]:
    """The text of each key an event may have, and of the test that it has it."""
    exprs: list[Expr] = [key.value] if key.value is not None else []
    exprs += [r.condition for r in key.ranges]
    slot = next((k[0] for k in keys_of(*exprs)), stream)
    names = RowLayout((slot, n, None) for n in builder.schema(stream).names)
    text = names.unpack(names.used(*exprs))
    if text:
        builder.writer.line(text)
    make = ExprWriter(builder.writer, names.code)
    if key.value is not None:
        return [(make.value(key.value), "key is not None")]
    return [(repr(r.label), make.condition(r.condition)) for r in key.ranges]
