"""Doors by annotation: what `@source(...)` and `@sink(...)` say, and which class answers to it.

    @source(type='http', path='/logins', @map(type='json'))

becomes `SourceSpec("login_stream", "http", {"path": "/logins"}, MapSpec("json"))`. The type is one
of `declared` or of an installed package's entry points, so a user adds a source with one class and
one line:

    [project.entry-points."edgewise.sources"]
    carrier-pigeon = "pigeons.source:PigeonSource"

Such a class names its options in `OPTIONS` and what it can promise in `GUARANTEES`; both are
checked before anything starts. HTTP is the one door shared by all streams: it has no class of its
own kind here, `http_config` gathers its annotations into the one `HttpDoor`.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from importlib import import_module
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from edgewise.event.schema import Schema
from edgewise.gateway.declared import SINKS, SOURCES, Declared
from edgewise.gateway.spec import (
    BadSpec,
    Dedup,
    Guarantee,
    MapSpec,
    Option,
    SinkSpec,
    SourceSpec,
)

if TYPE_CHECKING:  # `edgewise check` looks here and must not load a server or Arrow for it
    from importlib.metadata import EntryPoint

    from edgewise.event.clock import Clock
    from edgewise.gateway.drain import Cursor
    from edgewise.gateway.http import HttpConfig
    from edgewise.gateway.stats import DoorStats
    from edgewise.log.api import LogReader, LogWriter

SOURCES_GROUP = "edgewise.sources"
SINKS_GROUP = "edgewise.sinks"


class Door(Protocol):
    """One annotation, running."""

    stats: DoorStats

    async def start(self) -> None:
        """Returns when events may flow; raises SetupError where the other side cannot be."""
        ...

    async def stop(self) -> None:
        """Within two seconds; what was not acknowledged to the other side it will send again."""
        ...


class Source(Door, Protocol):
    """The world to a log. `options` are complete: defaults are filled in."""

    def __init__(
        self, spec: SourceSpec, schema: Schema, writer: LogWriter, clock: Clock
    ) -> None: ...


class Sink(Door, Protocol):
    """The rows of a log to the world, from where it left off."""

    def __init__(
        self, spec: SinkSpec, schema: Schema, reader: LogReader, cursor: Cursor
    ) -> None: ...


class Declares(Protocol):
    """What the class of an entry point has besides being a Source or a Sink."""

    OPTIONS: ClassVar[Mapping[str, Option]]
    GUARANTEES: ClassVar[tuple[Guarantee, ...]]  # the first is the default

    @staticmethod
    def check(options: Mapping[str, str]) -> None:
        """BadSpec where complete options cannot work together; nothing is opened here."""
        ...


# Every type has these besides its own.
SHARED_OPTIONS: Mapping[str, Option] = {
    "delivery": Option("at-most-once, at-least-once or effectively-once"),
}
SINK_OPTIONS: Mapping[str, Option] = {
    **SHARED_OPTIONS,
    "recovery": Option("precise, gap or rollback: what the rows survive; checked with the plan"),
}
SOURCE_OPTIONS: Mapping[str, Option] = {
    **SHARED_OPTIONS,
    "dedup": Option("attribute that is the id of an event: one that comes again is dropped"),
    "dedup.bound": Option("how many ids are remembered, the last ones of the stream", "100000"),
}
HTTP_OPTIONS: Mapping[str, Option] = {
    "path": Option("a further address for this stream, beside /streams/<stream>"),
}
HTTP_GUARANTEES = (Guarantee.AT_LEAST_ONCE, Guarantee.EFFECTIVELY_ONCE)


def check_source(spec: SourceSpec) -> SourceSpec:
    """The spec with all defaults filled in; BadSpec where no door can keep it."""
    if spec.type == "http":
        options = _complete(
            spec.type, spec.options, {**SOURCE_OPTIONS, **HTTP_OPTIONS}, HTTP_GUARANTEES
        )
        path = options["path"]
        if path and not path.startswith("/"):
            raise BadSpec(f"path '{path}' of source 'http' must start with '/'", "path")
        if spec.map != MapSpec() and not path:
            raise BadSpec(
                f"an http source with a mapping of its own ({spec.map.type}) needs path='/...': "
                "/streams/<stream> takes JSON and Arrow",
            )
    else:
        said = declared_source(spec.type)
        known = {**SOURCE_OPTIONS, **said.options}
        can = _with_dedup(said.guarantees) if spec.options.get("dedup") else said.guarantees
        options = _complete(spec.type, spec.options, known, can)
        said.check(options)
        _check_type(spec, said)
    return SourceSpec(spec.stream, spec.type, options, spec.map)


def check_sink(spec: SinkSpec) -> SinkSpec:
    said = declared_sink(spec.type)
    known = {**SINK_OPTIONS, **said.options}
    options = _complete(spec.type, spec.options, known, said.guarantees)
    said.check(options)
    _check_type(spec, said)
    return SinkSpec(spec.stream, spec.type, options, spec.map)


def _check_type(spec: SourceSpec | SinkSpec, said: Declared) -> None:
    if said.maps and spec.map.type not in said.maps:
        known = ", ".join(said.maps)
        raise BadSpec(f"'{spec.type}' is mapped as one of: {known}; not as {spec.map.type}", "map")


def declared_source(kind: str) -> Declared:
    if kind in SOURCES:
        return SOURCES[kind]
    return _declared(_plugin(kind, SOURCES_GROUP, "source", (*SOURCES, "http")))


def declared_sink(kind: str) -> Declared:
    if kind in SINKS:
        return SINKS[kind]
    return _declared(_plugin(kind, SINKS_GROUP, "sink", tuple(SINKS)))


def source_class(kind: str) -> type[Source]:
    found: type[Source] = _class(declared_source(kind))
    return found


def sink_class(kind: str) -> type[Sink]:
    found: type[Sink] = _class(declared_sink(kind))
    return found


class AnnotationLike(Protocol):
    """`plan.annotations.Annotation`, which this room does not know."""

    @property
    def name(self) -> str: ...
    @property
    def pairs(self) -> tuple[tuple[str, str], ...]: ...
    @property
    def nested(self) -> tuple[Any, ...]: ...


def source_of(stream: str, annotation: AnnotationLike, schema: Schema | None = None) -> SourceSpec:
    """The spec of one `@source(...)`, checked; its mapping too where the schema is given."""
    kind, options, mapping = _elements(annotation)
    spec = check_source(SourceSpec(stream, kind, options, mapping))
    if spec.options["dedup"]:
        Dedup.of(spec, schema)
    if schema is not None and mapping != MapSpec():  # plain JSON takes every schema
        from edgewise.gateway.mappers import check_map

        check_map(mapping, schema)
    return spec


def sink_of(stream: str, annotation: AnnotationLike, schema: Schema | None = None) -> SinkSpec:
    """The spec of one `@sink(...)`, checked; its mapping too where the schema is given."""
    kind, options, mapping = _elements(annotation)
    spec = check_sink(SinkSpec(stream, kind, options, mapping))
    if schema is not None and mapping != MapSpec():
        from edgewise.gateway.renderers import renderer_of

        renderer_of(mapping, schema)
    return spec


def _elements(annotation: AnnotationLike) -> tuple[str, dict[str, str], MapSpec]:
    options = {key.lower(): value for key, value in annotation.pairs}
    kind = options.pop("type", "")
    if not kind:
        raise BadSpec(f"@{annotation.name} needs a type, such as type='http'", "type")
    return kind, options, _map_of(annotation)


def _map_of(annotation: AnnotationLike) -> MapSpec:
    for inner in annotation.nested:
        if inner.name.lower() == "map":
            options = {key.lower(): value for key, value in inner.pairs}
            attributes: dict[str, str] = {}
            for deeper in inner.nested:
                if deeper.name.lower() in {"attributes", "payload"}:
                    attributes = dict(deeper.pairs)
            return MapSpec(options.pop("type", "json"), options, attributes)
    return MapSpec()


def http_config(specs: Iterable[SourceSpec], config: HttpConfig | None = None) -> HttpConfig:
    """The config of the one HTTP door for all `@source(type='http')` of an app."""
    from edgewise.gateway.http import HttpConfig

    given = config or HttpConfig()
    paths, maps, keyed = dict(given.paths), dict(given.maps), set(given.keyed)
    for spec in specs:
        if spec.type != "http":
            continue
        options = check_source(spec).options
        path = options["path"]
        if path and paths.setdefault(path, spec.stream) != spec.stream:
            raise BadSpec(f"path '{path}' is taken by stream '{paths[path]}'", "path")
        if spec.map != MapSpec():
            maps[path] = spec.map
        if options["delivery"] == Guarantee.EFFECTIVELY_ONCE.value and not options["dedup"]:
            keyed.add(spec.stream)
    return replace(given, paths=paths, maps=maps, keyed=frozenset(keyed))


def _plugin(kind: str, group: str, word: str, ours: tuple[str, ...]) -> EntryPoint:
    from importlib.metadata import entry_points  # slow to load, and most apps need none

    plugins = {p.name: p for p in entry_points(group=group)}
    if kind in plugins:
        return plugins[kind]
    known = sorted({*ours, *plugins})
    near = difflib.get_close_matches(kind, known, n=1)
    hint = f"did you mean '{near[0]}'?" if near else f"known: {', '.join(known)}"
    raise BadSpec(f"no {word} of type '{kind}'; {hint}")


def _declared(plugin: EntryPoint) -> Declared:
    says: type[Declares] = plugin.load()
    return Declared(plugin.value, says.OPTIONS, says.GUARANTEES, says.check)


def _class(said: Declared) -> Any:
    module, _, name = said.where.partition(":")
    return attrgetter(name)(import_module(module))


def _complete(
    kind: str,
    given: Mapping[str, str],
    known: Mapping[str, Option],
    guarantees: tuple[Guarantee, ...],
) -> dict[str, str]:
    every = {**SHARED_OPTIONS, **known}
    for name in given:
        if name not in every:
            near = difflib.get_close_matches(name, every, n=1)
            hint = f"did you mean '{near[0]}'?" if near else f"known: {', '.join(sorted(every))}"
            raise BadSpec(f"'{kind}' has no option '{name}'; {hint}", name)
    options = dict(given)
    for name, option in every.items():
        if option.default is None and name not in given:
            raise BadSpec(f"'{kind}' needs the option '{name}': {option.doc}", name)
        options.setdefault(name, option.default or "")
    options["delivery"] = _delivery(kind, options["delivery"], guarantees).value
    return options


def _with_dedup(can: tuple[Guarantee, ...]) -> tuple[Guarantee, ...]:
    """What comes at least once, and each id once, comes effectively once."""
    more = Guarantee.AT_LEAST_ONCE in can and Guarantee.EFFECTIVELY_ONCE not in can
    return (*can, Guarantee.EFFECTIVELY_ONCE) if more else can


def _delivery(kind: str, asked: str, possible: tuple[Guarantee, ...]) -> Guarantee:
    if not asked:
        return possible[0]
    can = ", ".join(g.value for g in possible)
    for guarantee in possible:
        if guarantee.value == asked:
            return guarantee
    raise BadSpec(f"'{kind}' cannot give '{asked}' delivery; it gives: {can}", "delivery")
