"""Lower annotations, and check the ones the language knows."""

from __future__ import annotations

from zoneinfo import available_timezones

from edgewise.lang.lexer import tokenize
from edgewise.lang.parse.expressions import Expressions
from edgewise.lang.report import Refused, Report
from edgewise.lang.source import SourceText
from edgewise.lang.syntax.query import Annotation
from edgewise.plan import nodes


def lower_annotation(written: Annotation) -> nodes.Annotation:
    nested = tuple(lower_annotation(a) for a in written.nested)
    return nodes.Annotation(written.name, written.pairs, nested)


def lower_annotations(written: tuple[Annotation, ...]) -> tuple[nodes.Annotation, ...]:
    return tuple(lower_annotation(a) for a in written)


def find_annotation(written: tuple[Annotation, ...], name: str) -> tuple[Annotation, ...]:
    return tuple(a for a in written if a.name.lower() == name.lower())


def annotation_value(annotation: Annotation, key: str, default: str = "") -> str:
    return next((v for k, v in annotation.pairs if k.lower() == key.lower()), default)


def parse_duration_ms(report: Report, annotation: Annotation, key: str) -> int | None:
    """A time written as text, such as `interval='10 sec'`; None where there is none."""
    text = annotation_value(annotation, key, "\0")
    if text == "\0":
        return None
    inside = Report(SourceText(text))
    tokens, _ = tokenize(inside)
    cursor = Expressions(tokens, inside)
    try:
        found = cursor.parse_duration("a time")
        if cursor.at_end() and not inside.failed:
            return found.ms
    except Refused:
        pass
    given = f"{key}='{text}'" if key else f"'{text}'"
    return report.fail(annotation.at, f"{given} is not a time", "write it as '10 sec'")


def parse_lateness_ms(report: Report, written: tuple[Annotation, ...]) -> int | None:
    """`@lateness('5 sec')` of a stream."""
    found = find_annotation(written, "lateness")
    if len(found) > 1:
        report.error(found[1].at, "a stream has one @lateness")
    for annotation in found[:1]:
        if [key for key, _ in annotation.pairs] != [""]:
            hint = "write @lateness('5 sec')"
            report.fail(annotation.at, "@lateness takes one time and nothing else", hint)
        return parse_duration_ms(report, annotation, "")
    return None


def lower_state_limit(report: Report, written: tuple[Annotation, ...]) -> nodes.StateLimit | None:
    """`@state(limit='1000', idle='1 hour')`; `@purge` is the old word for the second."""
    found = find_annotation(written, "state")
    if len(found) > 1:
        report.error(found[1].at, "one @state is enough", "write limit and idle in it")
    idle: int | None = None
    for purge in find_annotation(written, "purge"):
        if annotation_value(purge, "enable", "true").lower() == "true":
            parse_duration_ms(report, purge, "interval")
            idle = parse_duration_ms(report, purge, "idle.period")
    for annotation in found[:1]:
        known = {key.lower() for key, _ in annotation.pairs}
        if not known or known - {"limit", "idle"}:
            hint = "write @state(limit='1000', idle='1 hour')"
            report.fail(annotation.at, "@state has 'limit', 'idle' or both", hint)
        if "limit" in known:
            _check_positive(report, annotation, "limit")
        if "idle" in known:
            idle = parse_duration_ms(report, annotation, "idle")
        text = annotation_value(annotation, "limit")
        return nodes.StateLimit(int(text) if text.isdigit() else None, idle)
    return nodes.StateLimit(idle_ms=idle) if idle is not None else None


def check_stream_annotations(report: Report, written: tuple[Annotation, ...]) -> None:
    for annotation in written:
        name = annotation.name.lower()
        if name in {"source", "sink"} and not annotation_value(annotation, "type"):
            hint = f"write @{name}(type='topic', ...)"
            report.error(annotation.at, f"@{annotation.name} has no type", hint)
        if name == "async":
            for key in ("buffer.size", "workers", "batch.size.max"):
                _check_positive(report, annotation, key)
        if name == "onerror":
            action = annotation_value(annotation, "action", "LOG").upper()
            if action not in {"LOG", "STREAM", "STORE"}:
                report.error(annotation.at, "the action of @OnError is LOG, STREAM or STORE")


def _check_positive(report: Report, annotation: Annotation, key: str) -> None:
    text = annotation_value(annotation, key, "1")
    if not text.isdecimal() or int(text[:9]) < 1:
        report.error(annotation.at, f"{key} of @{annotation.name} must be 1 or more")


def check_app_annotations(report: Report, written: tuple[Annotation, ...]) -> None:
    for annotation in find_annotation(written, "app:async"):
        hint = "put @async(buffer.size='64') on the streams that need it"
        report.error(annotation.at, "@app:async is not supported for a whole app", hint)
    for annotation in find_annotation(written, "app:timezone"):
        zone = annotation_value(annotation, "")
        if zone not in available_timezones():
            hint = "write it as 'Asia/Singapore'"
            report.error(annotation.at, f"there is no time zone '{zone}'", hint)
    for annotation in find_annotation(written, "app:playback"):
        for key in ("idle.time", "increment"):
            with report.attempt():
                parse_duration_ms(report, annotation, key)


def find_app_zone(written: tuple[Annotation, ...]) -> str:
    """Where the days of aggregations begin and end."""
    return next((annotation_value(a, "") for a in find_annotation(written, "app:timezone")), "UTC")


def find_app_name(written: tuple[Annotation, ...]) -> str:
    for annotation in find_annotation(written, "app:name"):
        return annotation_value(annotation, "") or annotation_value(annotation, "name")
    return "app"
