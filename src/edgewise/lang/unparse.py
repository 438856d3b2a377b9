"""Write a syntax tree as text that `parse` reads back as the same tree; `layout` formats it."""

from __future__ import annotations

import re

from edgewise.event.types import AttrType
from edgewise.lang.syntax import app as tree
from edgewise.lang.syntax import query as q
from edgewise.lang.syntax.expr import (
    AttrRef,
    Binary,
    Call,
    Duration,
    Expression,
    InTable,
    IsNull,
    Literal,
    Logical,
    Not,
    StreamRef,
)
from edgewise.lang.tokens import KEYWORDS, UNIT_WORDS
from edgewise.plan.text import AND, ATOM, IN, LEVELS, NOT, OR

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]*([.:-][A-Za-z_][A-Za-z0-9_]*)*\Z")


def unparse_app(app: tree.App) -> str:
    parts = [_write_annotations(app.annotations)]
    parts += [f"{_write_definition(d)};\n" for d in app.definitions]
    for execution in app.executions:
        text = (
            unparse_query(execution)
            if isinstance(execution, q.Query)
            else _write_partition(execution)
        )
        parts.append(f"{text};\n")
    return "".join(parts)


# Names and literals.


def write_name(text: str) -> str:
    """Quoted where it would read as something else."""
    word = text.lower()
    if _PLAIN.match(text) and word not in KEYWORDS and word not in UNIT_WORDS:
        return text
    return f"`{text}`"


def write_string(text: str) -> str:
    if "\n" in text or "\r" in text or '"' in text:
        return f'"""{text}"""'
    return f'"{text}"' if "'" in text else f"'{text}'"


def _write_literal(node: Literal) -> str:
    match node.type:
        case AttrType.STRING:
            return write_string(str(node.value))
        case AttrType.BOOL:
            return "true" if node.value else "false"
        case AttrType.LONG:
            return f"{node.value}L"
        case AttrType.FLOAT:
            return f"{node.value!r}f"
        case AttrType.DOUBLE:
            return f"{node.value!r}d" if "e" in repr(node.value) else repr(node.value)
        case _:
            return str(node.value)


# Expressions.


def unparse(node: Expression) -> str:
    return _write_expression(node)[0]


def _write_expression(node: Expression) -> tuple[str, int]:
    match node:
        case Literal():
            return _write_literal(node), ATOM
        case Duration():
            return f"{node.ms} millisec", ATOM
        case AttrRef():
            prefix = f"{_write_stream_ref(node.stream)}." if node.stream else ""
            return prefix + write_name(node.name), ATOM
        case Not():
            return f"not {_write_operand(node.operand, NOT)}", NOT
        case Binary():
            level = LEVELS[node.op]
            left, right = _write_operand(node.left, level), _write_operand(node.right, level + 1)
            return f"{left} {node.op} {right}", level
        case Logical():
            level = AND if node.op == "and" else OR
            return f" {node.op} ".join(_write_operand(t, level + 1) for t in node.terms), level
        case IsNull():
            operand = node.operand
            text = (
                _write_stream_ref(operand) if isinstance(operand, StreamRef) else unparse(operand)
            )
            return f"{text} is null", ATOM
        case InTable():
            return f"{_write_operand(node.condition, IN)} in {write_name(node.table)}", IN
        case Call():
            return write_call(node), ATOM


def _write_operand(node: Expression, level: int) -> str:
    text, found = _write_expression(node)
    return text if found >= level else f"({text})"


def _write_stream_ref(ref: StreamRef) -> str:
    index = ref.index
    if index is None:
        picked = ""
    elif index >= 0:
        picked = f"[{index}]"
    else:
        picked = "[last]" if index == -1 else f"[last - {-index - 1}]"
    return f"{ref.prefix}{write_name(ref.name)}{picked}"


def write_call(node: Call) -> str:
    namespace = f"{write_name(node.namespace)}:" if node.namespace else ""
    args = "*" if node.star else ", ".join(unparse(a) for a in node.args)
    return f"{namespace}{write_name(node.name)}({args})"


# Annotations and definitions.


def _write_annotations(found: tuple[q.Annotation, ...]) -> str:
    return "".join(f"{_write_annotation(a)} " for a in found)


def _write_annotation(node: q.Annotation) -> str:
    head = ":".join(write_name(part) for part in node.name.split(":"))
    if node.name.lower().startswith("app:"):
        head = f"app:{write_name(node.name[4:])}"
    members = [f"{_write_key(k)}{write_string(v)}" for k, v in node.pairs]
    members += [_write_annotation(a) for a in node.nested]
    return f"@{head}({', '.join(members)})" if members else f"@{head}"


def _write_key(key: str) -> str:
    if not key:
        return ""
    return f"{key}=" if _KEY.match(key) else f"{write_string(key)}="


def _write_named(node: q.Name) -> str:
    return node.prefix + write_name(node.text)


def _write_columns(columns: tuple[tree.Column, ...]) -> str:
    return ", ".join(f"{write_name(c.name)} {c.type.value}" for c in columns)


def _write_definition(node: tree.Definition) -> str:
    head = f"{_write_annotations(node.annotations)}define"
    match node:
        case tree.StreamDefinition():
            return f"{head} stream {_write_named(node.name)} ({_write_columns(node.columns)})"
        case tree.TableDefinition():
            return f"{head} table {_write_named(node.name)} ({_write_columns(node.columns)})"
        case tree.WindowDefinition():
            shape = f"{_write_named(node.name)} ({_write_columns(node.columns)})"
            output = "" if node.events == "all" else f" output {node.events} events"
            return f"{head} window {shape} {write_call(node.window)}{output}"
        case tree.TriggerDefinition():
            when = f"every {unparse(node.every)}" if node.every else write_string(node.when)
            return f"{head} trigger {_write_named(node.name)} at {when}"
        case tree.FunctionDefinition():
            name, language = _write_named(node.name), write_name(node.language)
            returns = node.returns.value
            return f"{head} function {name}[{language}] return {returns} {{{node.body}}}"
        case tree.AggregationDefinition():
            by = f" by {unparse(node.by)}" if node.by else ""
            every = (" ... " if node.is_range else ", ").join(node.durations)
            body = f"from {_write_source(node.source)}{_write_selection(node.selection)}"
            return (
                f"{head} aggregation {_write_named(node.name)} {body} aggregate{by} every {every}"
            )


# Queries.


def unparse_query(node: q.Query) -> str:
    parts = [f"{_write_annotations(node.annotations)}from {_write_input(node.input)}"]
    if node.selection is not None:
        parts.append(_write_selection(node.selection))
    if node.rate is not None:
        parts.append(_write_rate(node.rate))
    return "".join(parts) + " " + _write_output(node.output)


def _write_partition(node: q.Partition) -> str:
    keys = ", ".join(_write_partition_key(k) for k in node.keys)
    body = " ".join(f"{unparse_query(query)};" for query in node.queries)
    return f"{_write_annotations(node.annotations)}partition with ({keys}) begin {body} end"


def _write_partition_key(node: q.PartitionKey) -> str:
    if node.value is not None:
        return f"{unparse(node.value)} of {_write_named(node.stream)}"
    # A range is read up to `as`: an `or` inside it would end the range before.
    ranges = (
        f"{_write_operand(r.condition, AND)} as {write_string(r.label)}" for r in node.ranges
    )
    return f"{' or '.join(ranges)} of {_write_named(node.stream)}"


def _write_input(node: q.QueryInput) -> str:
    match node:
        case q.Source():
            return _write_source(node)
        case q.Join():
            return _write_join(node)
        case q.StateInput():
            separator = " -> " if node.kind == "pattern" else ", "
            within = f" within {unparse(node.within)}" if node.within else ""
            return _write_state(node.state, separator) + within


def _write_source(node: q.Source) -> str:
    inner = node.stream
    stream = f"({unparse_query(inner)})" if isinstance(inner, q.Query) else _write_named(inner)
    window = f"#window.{write_call(node.window)}" if node.window else ""
    alias = f" as {write_name(node.alias)}" if node.alias else ""
    return f"{stream}{_write_handlers(node.before)}{window}{_write_handlers(node.after)}{alias}"


def _write_handlers(handlers: tuple[q.Handler, ...]) -> str:
    return "".join(
        f"[{unparse(h.condition)}]" if isinstance(h, q.Filter) else f"#{write_call(h.call)}"
        for h in handlers
    )


def _write_join(node: q.Join) -> str:
    word = "join" if node.kind == "inner" else f"{node.kind} outer join"
    left = " unidirectional" if node.trigger == "left" else ""
    right = " unidirectional" if node.trigger == "right" else ""
    on = f" on {unparse(node.on)}" if node.on is not None else ""
    sides = f"{_write_source(node.left)}{left} {word} {_write_source(node.right)}{right}"
    return f"{sides}{on}{_write_range(node.within, node.per)}"


def _write_range(within: q.Within | None, per: Expression | None) -> str:
    if within is None or per is None:
        return ""
    end = f", {unparse(within.end)}" if within.end is not None else ""
    return f" within {unparse(within.start)}{end} per {unparse(per)}"


def _write_state(node: q.State, separator: str) -> str:
    match node:
        case q.Element():
            ref = f"{write_name(node.ref)}=" if node.ref else ""
            return ref + _write_source(node.source)
        case q.Count():
            most = "" if node.most is None else node.most
            return f"{_write_state(node.element, separator)}<{node.least}:{most}>"
        case q.Absent():
            waiting = f" for {unparse(node.waiting)}" if node.waiting else ""
            return f"not {_write_source(node.source)}{waiting}"
        case q.Both():
            left, right = _write_state(node.left, separator), _write_state(node.right, separator)
            return f"({left} {node.op} {right})"
        case q.Every():
            inner = _write_state(node.state, separator)
            group = isinstance(node.state, q.Chain | q.Every)
            return f"every ({inner})" if group else f"every {inner}"
        case q.Chain():
            return separator.join(_write_state(s, separator) for s in node.states)


def _write_selection(node: q.Selection) -> str:
    items = ", ".join(
        unparse(i.expression) + (f" as {write_name(i.alias)}" if i.alias else "")
        for i in node.items
    )
    parts = [f" select {items or '*'}"]
    if node.group_by:
        parts.append("group by " + ", ".join(unparse(r) for r in node.group_by))
    if node.having is not None:
        parts.append(f"having {unparse(node.having)}")
    if node.order_by:
        order = (unparse(o.ref) + (" desc" if o.descending else "") for o in node.order_by)
        parts.append("order by " + ", ".join(order))
    if node.limit is not None:
        parts.append(f"limit {unparse(node.limit)}")
    if node.offset is not None:
        parts.append(f"offset {unparse(node.offset)}")
    return " ".join(parts)


def _write_rate(node: q.Rate) -> str:
    every = unparse(node.every) if node.every is not None else f"{node.events} events"
    return f" output {node.kind} every {every}"


def _write_output(node: q.Output) -> str:
    target = _write_named(node.target) if node.target else ""
    events = "" if node.events == "current" else f" {node.events} events"
    if node.kind == "return":
        return f"return{events}"
    if node.kind == "insert":
        return f"insert{events} into {target}"
    verb = {"delete": "delete", "update": "update", "upsert": "update or insert into"}[node.kind]
    sets = ", ".join(f"{unparse(a.target)} = {unparse(a.value)}" for a in node.assignments)
    changes = f" set {sets}" if sets else ""
    on = f" on {unparse(node.on)}" if node.on is not None else ""
    chosen = f" for{events}" if events else ""
    return f"{verb} {target}{chosen}{changes}{on}"
