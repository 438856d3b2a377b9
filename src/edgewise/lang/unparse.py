"""Tree to text: what `parse` reads back as the same tree. `layout` makes it pretty."""

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
    parts = [_annotations(app.annotations)]
    parts += [f"{_definition(d)};\n" for d in app.definitions]
    for execution in app.executions:
        text = (
            unparse_query(execution) if isinstance(execution, q.Query) else _partition(execution)
        )
        parts.append(f"{text};\n")
    return "".join(parts)


# Names and literals.


def name(text: str) -> str:
    """Quoted where it would read as something else."""
    word = text.lower()
    if _PLAIN.match(text) and word not in KEYWORDS and word not in UNIT_WORDS:
        return text
    return f"`{text}`"


def string(text: str) -> str:
    if "\n" in text or "\r" in text or '"' in text:
        return f'"""{text}"""'
    return f'"{text}"' if "'" in text else f"'{text}'"


def _literal(node: Literal) -> str:
    match node.type:
        case AttrType.STRING:
            return string(str(node.value))
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
    return _expression(node)[0]


def _expression(node: Expression) -> tuple[str, int]:
    match node:
        case Literal():
            return _literal(node), ATOM
        case Duration():
            return f"{node.ms} millisec", ATOM
        case AttrRef():
            prefix = f"{_stream_ref(node.stream)}." if node.stream else ""
            return prefix + name(node.name), ATOM
        case Not():
            return f"not {_at(node.operand, NOT)}", NOT
        case Binary():
            level = LEVELS[node.op]
            return f"{_at(node.left, level)} {node.op} {_at(node.right, level + 1)}", level
        case Logical():
            level = AND if node.op == "and" else OR
            return f" {node.op} ".join(_at(t, level + 1) for t in node.terms), level
        case IsNull():
            operand = node.operand
            text = _stream_ref(operand) if isinstance(operand, StreamRef) else unparse(operand)
            return f"{text} is null", ATOM
        case InTable():
            return f"{_at(node.condition, IN)} in {name(node.table)}", IN
        case Call():
            return call(node), ATOM


def _at(node: Expression, level: int) -> str:
    text, found = _expression(node)
    return text if found >= level else f"({text})"


def _stream_ref(ref: StreamRef) -> str:
    index = ref.index
    if index is None:
        picked = ""
    elif index >= 0:
        picked = f"[{index}]"
    else:
        picked = "[last]" if index == -1 else f"[last - {-index - 1}]"
    return f"{ref.prefix}{name(ref.name)}{picked}"


def call(node: Call) -> str:
    namespace = f"{name(node.namespace)}:" if node.namespace else ""
    args = "*" if node.star else ", ".join(unparse(a) for a in node.args)
    return f"{namespace}{name(node.name)}({args})"


# Annotations and definitions.


def _annotations(found: tuple[q.Annotation, ...]) -> str:
    return "".join(f"{_annotation(a)} " for a in found)


def _annotation(node: q.Annotation) -> str:
    head = ":".join(name(part) for part in node.name.split(":"))
    if node.name.lower().startswith("app:"):
        head = f"app:{name(node.name[4:])}"
    members = [f"{_key(k)}{string(v)}" for k, v in node.pairs]
    members += [_annotation(a) for a in node.nested]
    return f"@{head}({', '.join(members)})" if members else f"@{head}"


def _key(key: str) -> str:
    if not key:
        return ""
    return f"{key}=" if _KEY.match(key) else f"{string(key)}="


def _named(node: q.Name) -> str:
    return node.prefix + name(node.text)


def _columns(columns: tuple[tree.Column, ...]) -> str:
    return ", ".join(f"{name(c.name)} {c.type.value}" for c in columns)


def _definition(node: tree.Definition) -> str:
    head = f"{_annotations(node.annotations)}define"
    match node:
        case tree.StreamDefinition():
            return f"{head} stream {_named(node.name)} ({_columns(node.columns)})"
        case tree.TableDefinition():
            return f"{head} table {_named(node.name)} ({_columns(node.columns)})"
        case tree.WindowDefinition():
            shape = f"{_named(node.name)} ({_columns(node.columns)})"
            output = "" if node.events == "all" else f" output {node.events} events"
            return f"{head} window {shape} {call(node.window)}{output}"
        case tree.TriggerDefinition():
            when = f"every {unparse(node.every)}" if node.every else string(node.when)
            return f"{head} trigger {_named(node.name)} at {when}"
        case tree.FunctionDefinition():
            kind = f"{_named(node.name)}[{name(node.language)}] return {node.returns.value}"
            return f"{head} function {kind} {{{node.body}}}"
        case tree.AggregationDefinition():
            by = f" by {unparse(node.by)}" if node.by else ""
            every = (" ... " if node.is_range else ", ").join(node.durations)
            body = f"from {_source(node.source)}{_selection(node.selection)}"
            return f"{head} aggregation {_named(node.name)} {body} aggregate{by} every {every}"


# Queries.


def unparse_query(node: q.Query) -> str:
    parts = [f"{_annotations(node.annotations)}from {_input(node.input)}"]
    if node.selection is not None:
        parts.append(_selection(node.selection))
    if node.rate is not None:
        parts.append(_rate(node.rate))
    return "".join(parts) + " " + _output(node.output)


def _partition(node: q.Partition) -> str:
    keys = ", ".join(_partition_key(k) for k in node.keys)
    body = " ".join(f"{unparse_query(query)};" for query in node.queries)
    return f"{_annotations(node.annotations)}partition with ({keys}) begin {body} end"


def _partition_key(node: q.PartitionKey) -> str:
    if node.value is not None:
        return f"{unparse(node.value)} of {_named(node.stream)}"
    # A range is read up to `as`: an `or` inside it would end the range before.
    ranges = (f"{_at(r.condition, AND)} as {string(r.label)}" for r in node.ranges)
    return f"{' or '.join(ranges)} of {_named(node.stream)}"


def _input(node: q.QueryInput) -> str:
    match node:
        case q.Source():
            return _source(node)
        case q.Join():
            return _join(node)
        case q.StateInput():
            separator = " -> " if node.kind == "pattern" else ", "
            within = f" within {unparse(node.within)}" if node.within else ""
            return _state(node.state, separator) + within


def _source(node: q.Source) -> str:
    inner = node.stream
    stream = f"({unparse_query(inner)})" if isinstance(inner, q.Query) else _named(inner)
    window = f"#window.{call(node.window)}" if node.window else ""
    alias = f" as {name(node.alias)}" if node.alias else ""
    return f"{stream}{_handlers(node.before)}{window}{_handlers(node.after)}{alias}"


def _handlers(handlers: tuple[q.Handler, ...]) -> str:
    return "".join(
        f"[{unparse(h.condition)}]" if isinstance(h, q.Filter) else f"#{call(h.call)}"
        for h in handlers
    )


def _join(node: q.Join) -> str:
    word = "join" if node.kind == "inner" else f"{node.kind} outer join"
    left = " unidirectional" if node.trigger == "left" else ""
    right = " unidirectional" if node.trigger == "right" else ""
    on = f" on {unparse(node.on)}" if node.on is not None else ""
    sides = f"{_source(node.left)}{left} {word} {_source(node.right)}{right}"
    return f"{sides}{on}{_range(node.within, node.per)}"


def _range(within: q.Within | None, per: Expression | None) -> str:
    if within is None or per is None:
        return ""
    end = f", {unparse(within.end)}" if within.end is not None else ""
    return f" within {unparse(within.start)}{end} per {unparse(per)}"


def _state(node: q.State, separator: str) -> str:
    match node:
        case q.Element():
            ref = f"{name(node.ref)}=" if node.ref else ""
            return ref + _source(node.source)
        case q.Count():
            most = "" if node.most is None else node.most
            return f"{_state(node.element, separator)}<{node.least}:{most}>"
        case q.Absent():
            waiting = f" for {unparse(node.waiting)}" if node.waiting else ""
            return f"not {_source(node.source)}{waiting}"
        case q.Both():
            left, right = _state(node.left, separator), _state(node.right, separator)
            return f"({left} {node.op} {right})"
        case q.Every():
            inner = _state(node.state, separator)
            group = isinstance(node.state, q.Chain | q.Every)
            return f"every ({inner})" if group else f"every {inner}"
        case q.Chain():
            return separator.join(_state(s, separator) for s in node.states)


def _selection(node: q.Selection) -> str:
    items = ", ".join(
        unparse(i.expression) + (f" as {name(i.alias)}" if i.alias else "") for i in node.items
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


def _rate(node: q.Rate) -> str:
    every = unparse(node.every) if node.every is not None else f"{node.events} events"
    return f" output {node.kind} every {every}"


def _output(node: q.Output) -> str:
    target = _named(node.target) if node.target else ""
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
