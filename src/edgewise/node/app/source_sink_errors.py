"""Find the sources and sinks of an app that cannot work, with their position in its text.

The plan does not carry the positions of annotations: they are found again in the text, before the
definition of their stream. The gateway and the edge are only loaded for apps that use them, so
that `check` starts fast. Used by `load`.
"""

from __future__ import annotations

import re

from edgewise.edge.topics.merges import Merge
from edgewise.errors import Problem, ProtocolError, SetupError, Span
from edgewise.plan.nodes import Annotation, App, Stream

_KINDS = ("source", "sink")


def find_source_sink_errors(
    app: App, text: str, merges: tuple[Merge, ...] = ()
) -> tuple[Problem, ...]:
    """For `check` and everything that loads an app. `merges` are the user's own.

    Also warnings: options that do nothing here, types without a connector.
    """
    every = [
        (stream, annotation, kind, number)
        for stream in app.streams
        for kind in _KINDS
        for number, annotation in enumerate(stream.annotated(kind))
    ]
    found = [entry for entry in every if entry[1].get("type") != "topic"]
    topics = [entry for entry in every if entry[1].get("type") == "topic"]
    problems = (
        *(problem for entry in found for problem in _check_connector(*entry, text)),
        *(
            problem
            for s, a, _, number in topics
            if (problem := _check_topic(s, a, number, text, merges)) is not None
        ),
    )
    if any(problem.severity == "error" for problem in problems):
        return problems
    return problems + _find_dedup_conflicts(
        [(s, a) for s, a, kind, _ in found if kind == "source"], text
    )


def _find_dedup_conflicts(
    found: list[tuple[Stream, Annotation]], text: str
) -> tuple[Problem, ...]:
    if not any(a.get("dedup") for _, a in found):
        return ()
    from edgewise.gateway.connectors import parse_source
    from edgewise.gateway.spec import BadSpec, dedup_by_stream

    problems = []
    for stream in dict.fromkeys(s for s, _ in found):
        try:
            dedup_by_stream(parse_source(s.name, a) for s, a in found if s is stream)
        except BadSpec as error:
            problems.append(
                Problem(locate_option(text, stream.name, "source", 0, "dedup"), str(error))
            )
    return tuple(problems)


def _check_connector(
    stream: Stream, annotation: Annotation, kind: str, number: int, text: str
) -> list[Problem]:
    from edgewise.gateway.connectors import parse_sinks, parse_source
    from edgewise.gateway.spec import BadSpec, SinkSpec, SourceSpec

    def locate(option: str) -> Span:
        return locate_option(text, stream.name, kind, number, option)

    specs: tuple[SourceSpec | SinkSpec, ...]
    try:
        if kind == "source":
            specs = (parse_source(stream.name, annotation, stream.schema),)
        else:
            specs = parse_sinks(stream.name, annotation, stream.schema)
    except BadSpec as error:
        return [Problem(locate(error.option), str(error))]
    if specs[0].unconnected:
        message = f"not connected: {specs[0].unconnected}"
        hint = "check and replay work, run does not start"
        return [Problem(locate("type"), message, hint, "warning")]
    notes = dict.fromkeys(note for spec in specs for note in spec.notes)
    return [Problem(locate(note.option), note.message, "", "warning") for note in notes]


def _check_topic(
    stream: Stream, annotation: Annotation, number: int, text: str, merges: tuple[Merge, ...]
) -> Problem | None:
    from edgewise.edge.topics.topic_sink import demand_attributes
    from edgewise.node.app.topic_options import parse_topic_sink

    try:
        demand_attributes(parse_topic_sink(annotation, merges), stream.schema)
    except (SetupError, ProtocolError) as error:
        # A message of the edge about an option begins with its name.
        why = error.reason if isinstance(error, ProtocolError) else str(error)
        named = re.match(r"([\w.]+)='", why)
        about = "conflate" if "merge '" in why else "path"
        option = named[1] if named else about
        return Problem(locate_option(text, stream.name, "sink", number, option), why)
    return None


def locate_option(text: str, stream: str, kind: str, number: int, option: str) -> Span:
    """The span of an option of the stream's `number`-th annotation, or of the annotation."""
    plain = _blank_comments(text)
    definition = re.search(rf"define\s+\w+\s+`?{re.escape(stream)}`?\b", plain, re.IGNORECASE)
    end = definition.start() if definition else len(plain)
    before = plain[:end]
    # Its annotations are between the definition before it and its own.
    begin = max((m.end() for m in re.finditer(r"\)\s*;", before)), default=0)
    annotations = list(re.finditer(rf"@{kind}\b", before[begin:], re.IGNORECASE))
    if not annotations:
        return _span(text, end, len("define"))
    match = annotations[min(number, len(annotations) - 1)]
    at, length = begin + match.start(), len(match[0])
    inside = re.search(rf"\b{re.escape(option)}\s*=", before[at:]) if option else None
    if inside:
        return _span(text, at + inside.start(), len(option))
    return _span(text, at, length)


def _blank_comments(text: str) -> str:
    """The same text with comments as spaces, so that positions stay."""
    blank = re.compile(r"/\*.*?\*/|--[^\n]*", re.DOTALL)
    return blank.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), text)


def _span(text: str, at: int, length: int) -> Span:
    line = text.count("\n", 0, at) + 1
    return Span(line, at - text.rfind("\n", 0, at), length)
