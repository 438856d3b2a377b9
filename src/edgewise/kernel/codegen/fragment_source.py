"""Write the source of a fragment: one function, `build(rt)`, that gives its feeders.

It holds the stores, the functions of each query, one function per stream (gives a chunk to those
who read it, in order of definition), one per partition and stream (finds the instance), and one
feeder per input stream.
"""

from __future__ import annotations

from typing import Any

from edgewise.kernel.codegen.chain_query import ChainQueryWriter
from edgewise.kernel.codegen.chain_steps import chain_of
from edgewise.kernel.codegen.feeders import write_feeder
from edgewise.kernel.codegen.filter_index import (
    FilterIndex,
    Reader,
    build_filter_index,
    find_text,
    write_index,
)
from edgewise.kernel.codegen.fragment_builder import FragmentBuilder
from edgewise.kernel.codegen.join_query import JoinQueryWriter
from edgewise.kernel.codegen.keyed_query import KeyedQueryWriter
from edgewise.kernel.codegen.partition_routing import write_partition
from edgewise.kernel.codegen.pattern_query import PatternQueryWriter
from edgewise.kernel.codegen.sequence_query import SequenceQueryWriter
from edgewise.kernel.codegen.sequence_steps import sequence_of
from edgewise.kernel.codegen.store_definitions import write_stores
from edgewise.kernel.codegen.stream_query import StreamQueryWriter
from edgewise.plan.nodes import JoinInput, Query, StateInput, StreamInput


def write_source(builder: FragmentBuilder) -> str:
    w = builder.writer
    with w.block("def build(rt)"):
        w.line("emit = rt.emit")
        write_stores(builder)
        codes = {q.name: _query(builder, q) for q in builder.queries}
        for code in codes.values():
            builder.own(f"query {code.query.name}")
            code.write()
        for scope in builder.scopes.values():
            if scope.partition is not None and not _keeps_keys(codes, scope.partition.name):
                write_partition(builder, scope, lambda q, s: entries(codes[q.name], s))
        for stream in builder.read():
            if not stream.startswith("#"):
                _stream(builder, stream, codes)
        fed = [s.name for s in builder.app.streams if s.name in builder.read()]
        for stream in fed:
            write_feeder(builder, stream, _readers(builder, stream, codes))
        w.line()
        w.line(f"rt.nodes[:] = [{', '.join(builder.timers)}]")
        w.line(f"rt.fresh = lambda: [{', '.join(builder.root.fresh)}]")
        if builder.root.created:
            with w.block("def created(S)"):
                for line in builder.root.created:
                    w.line(line)
            w.line("rt.created = created")
        feeders = [f"{s!r}: {builder.stream_name(s)}_feed" for s in fed]
        feeders += [f"('', {s!r}): {builder.stream_name(s)}" for s in fed]
        w.line(f"return {{{', '.join(feeders)}}}")
    return w.text()


AnyQuery = StreamQueryWriter | JoinQueryWriter | PatternQueryWriter | KeyedQueryWriter


def _keeps_keys(codes: dict[str, AnyQuery], partition: str) -> bool:
    """A partition whose only query keeps its own keys."""
    return any(
        isinstance(c, KeyedQueryWriter) and c.query.partition == partition for c in codes.values()
    )


def _query(builder: FragmentBuilder, query: Query) -> AnyQuery:
    chain = chain_of(builder, query)
    # Keyed from outside, a chain sees one key only and would never forget one that falls silent.
    forgets = query.partition or not builder.fragment.keyed
    if chain is not None and forgets:
        return ChainQueryWriter(builder, query, chain)
    sequence = sequence_of(builder, query)
    if sequence is not None:
        return SequenceQueryWriter(builder, query, sequence)
    match query.input:
        case StreamInput():
            return StreamQueryWriter(builder, query, query.input)
        case JoinInput():
            return JoinQueryWriter(builder, query, query.input)
        case StateInput():
            return PatternQueryWriter(builder, query, query.input)


def entries(code: AnyQuery, stream: str) -> list[str]:
    """The functions of a query that take a chunk of this stream."""
    match code:
        case StreamQueryWriter():
            return [f"{code.name}_in"]
        case JoinQueryWriter():
            return code.entries(stream)
        case PatternQueryWriter() | KeyedQueryWriter():
            return [code.entry(stream)]


def _stream(builder: FragmentBuilder, stream: str, codes: dict[str, Any]) -> None:
    w = builder.writer
    w.line()
    readers = _readers(builder, stream, codes)
    found = build_filter_index(readers)
    if found is not None:
        write_index(builder, builder.stream_name(stream), found)
    with w.block(f"def {builder.stream_name(stream)}(S, chunk)"):
        if not builder.guarded(stream):
            _write_readers(builder, stream, readers, found)
            return
        with w.block("try"):
            _write_readers(builder, stream, readers, found)
        with w.block("except Exception as why"):
            w.line(f"rt.fault({stream!r}, why, chunk)")
            if builder.has_stream(f"!{stream}"):
                w.line("chunk = [(0, ts, (*row, str(why))) for _, ts, row in chunk]")
                if f"!{stream}" in builder.read():
                    w.line(f"{builder.stream_name(f'!{stream}')}(S, chunk)")
                w.line(f"emit({f'!{stream}'!r}, chunk)")


def _readers(builder: FragmentBuilder, stream: str, codes: dict[str, Any]) -> list[Reader]:
    """The functions that take a chunk of this stream, in the order they are written."""
    found: list[Reader] = []
    called: set[str] = set()
    for query in builder.readers(stream):
        scope, code = builder.scopes[query.partition], codes[query.name]
        if scope.partition is None or isinstance(code, KeyedQueryWriter):
            found.append((code, entries(code, stream)))
        elif scope.name not in called:
            called.add(scope.name)
            found.append((None, [f"{builder.stream_name(stream, query.partition)}_route"]))
    found += [
        (None, [f"{builder.store_name(kept.name)}_in"])
        for kept in builder.app.aggregations
        if kept.input.stream == stream and kept.name in builder.stores
    ]
    return found


def _write_readers(
    builder: FragmentBuilder, stream: str, readers: list[Reader], found: FilterIndex | None
) -> None:
    """A chunk to all that read the stream, in the order they are written."""
    w = builder.writer
    if found is not None:
        with w.block("if len(chunk) == 1"):
            with w.block(f"for q in {find_text(builder.stream_name(stream), found)}"):
                w.line("q(S, chunk)")
            w.line("return")
    for _, names in readers:
        for name in names:
            w.line(f"{name}(S, chunk)")
    w.line("return")
