"""Sources and sinks that no door can keep, as problems with their place in the app's text.

The plan does not carry the places of annotations: they are found again in the text, by the
definition they stand before. The gateway and the edge are only loaded for apps that use them.
"""

from __future__ import annotations

import re

from edgewise.edge.merge import Merge
from edgewise.errors import Problem, ProtocolError, SetupError, Span
from edgewise.plan.nodes import Annotation, App, Stream

_KINDS = ("source", "sink")


def end_problems(app: App, text: str, merges: tuple[Merge, ...] = ()) -> tuple[Problem, ...]:
    """For `check` and everything that loads an app. `merges` are the user's own."""
    every = [
        (stream, annotation, kind, number)
        for stream in app.streams
        for kind in _KINDS
        for number, annotation in enumerate(stream.annotated(kind))
    ]
    found = [end for end in every if end[1].get("type") != "topic"]
    topics = [end for end in every if end[1].get("type") == "topic"]
    problems = tuple(
        problem
        for problem in (
            *(_problem(*end, text) for end in found),
            *(_topic_problem(s, a, number, text, merges) for s, a, _, number in topics),
        )
        if problem is not None
    )
    return problems or _disagreements(
        [(s, a) for s, a, kind, _ in found if kind == "source"], text
    )


def _disagreements(found: list[tuple[Stream, Annotation]], text: str) -> tuple[Problem, ...]:
    if not any(a.get("dedup") for _, a in found):
        return ()
    from edgewise.gateway.doors import source_of
    from edgewise.gateway.spec import BadSpec, dedup_by_stream

    problems = []
    for stream in dict.fromkeys(s for s, _ in found):
        try:
            dedup_by_stream(source_of(s.name, a) for s, a in found if s is stream)
        except BadSpec as bad:
            problems.append(Problem(place_of(text, stream.name, "source", 0, "dedup"), str(bad)))
    return tuple(problems)


def _problem(
    stream: Stream, annotation: Annotation, kind: str, number: int, text: str
) -> Problem | None:
    from edgewise.gateway.doors import sink_of, source_of
    from edgewise.gateway.spec import BadSpec

    check = source_of if kind == "source" else sink_of
    try:
        check(stream.name, annotation, stream.schema)
    except BadSpec as bad:
        return Problem(place_of(text, stream.name, kind, number, bad.option), str(bad))
    return None


def _topic_problem(
    stream: Stream, annotation: Annotation, number: int, text: str, merges: tuple[Merge, ...]
) -> Problem | None:
    from edgewise.edge.sink import demand_attributes
    from edgewise.node.topics import topic_sink

    try:
        demand_attributes(topic_sink(annotation, merges), stream.schema)
    except (SetupError, ProtocolError) as bad:
        # What the edge says about an option begins with its name.
        why = bad.reason if isinstance(bad, ProtocolError) else str(bad)
        named = re.match(r"(\w+)='", why)
        about = "conflate" if "merge '" in why else "path"
        option = named[1] if named else about
        return Problem(place_of(text, stream.name, "sink", number, option), why)
    return None


def place_of(text: str, stream: str, kind: str, number: int, option: str) -> Span:
    """Of the option of the stream's `number`-th annotation of a kind, or of the annotation."""
    plain = _without_comments(text)
    definition = re.search(rf"define\s+stream\s+`?{re.escape(stream)}`?\b", plain, re.IGNORECASE)
    end = definition.start() if definition else len(plain)
    before = plain[:end]
    # Its annotations stand between the end of the definition before it and its own.
    begin = max((m.end() for m in re.finditer(r"\)\s*;", before)), default=0)
    marks = list(re.finditer(rf"@{kind}\b", before[begin:], re.IGNORECASE))
    if not marks:
        return _span(text, end, len("define"))
    mark = marks[min(number, len(marks) - 1)]
    at, length = begin + mark.start(), len(mark[0])
    inside = re.search(rf"\b{re.escape(option)}\s*=", before[at:]) if option else None
    if inside:
        return _span(text, at + inside.start(), len(option))
    return _span(text, at, length)


def _without_comments(text: str) -> str:
    """The same text with comments as spaces, so that positions stay."""
    blank = re.compile(r"/\*.*?\*/|--[^\n]*", re.DOTALL)
    return blank.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), text)


def _span(text: str, at: int, length: int) -> Span:
    line = text.count("\n", 0, at) + 1
    return Span(line, at - text.rfind("\n", 0, at), length)
