"""Parse `@source(...)` and `@sink(...)`, check their options, and find the class that runs them.

    @source(type='http', path='/logins', @map(type='json'))

becomes `SourceSpec("login_stream", "http", {"path": "/logins"}, MapSpec("json"))`. The type is one
of `connector_types` or an entry point of an installed package, so a user adds a source with one
class and one line:

    [project.entry-points."edgewise.sources"]
    carrier-pigeon = "pigeons.source:PigeonSource"

Such a class names its options in `OPTIONS` and its guarantees in `GUARANTEES`; both are checked
before anything starts. HTTP has no class here: all streams share one `IngestServer`, and
`build_ingest_config` collects its annotations. No client library is loaded before a source or
sink starts, because `edgewise check` must start fast.

Used by `node.app` (check an app) and `node.serve` (start its sources and sinks).
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from importlib import import_module
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from edgewise.errors import name_missing_extra
from edgewise.event.schema import Schema
from edgewise.gateway.connector_checks import ConnectorType
from edgewise.gateway.connector_types import SINKS, SOURCES
from edgewise.gateway.distribution import split_destinations
from edgewise.gateway.map_annotation import AnnotationLike, ParsedMap, parse_map
from edgewise.gateway.siddhi_options import (
    SIDDHI_SINKS,
    SIDDHI_SOURCES,
    SINK_ALIASES,
    SOURCE_ALIASES,
    SiddhiOptions,
    explain_unconnected,
    list_unconnected,
    translate_options,
)
from edgewise.gateway.spec import (
    BadSpec,
    DedupSpec,
    Guarantee,
    MapSpec,
    Option,
    SinkSpec,
    SourceSpec,
)

if TYPE_CHECKING:  # `edgewise check` looks here and must not load a server or Arrow for it
    from importlib.metadata import EntryPoint

    from edgewise.event.clock import SystemClock
    from edgewise.gateway.ingest_config import IngestConfig
    from edgewise.gateway.sink_reader import SinkCursor
    from edgewise.gateway.stats import ConnectorStats
    from edgewise.log.api import LogReader, LogWriter

SOURCES_GROUP = "edgewise.sources"
SINKS_GROUP = "edgewise.sinks"
INNER = ("map", "attributes", "payload", "distribution")  # annotations inside @source and @sink


class Connector(Protocol):
    """A running source or sink."""

    stats: ConnectorStats

    async def start(self) -> None:
        """Returns when events may flow; SetupError where the other side cannot be reached."""
        ...

    async def stop(self) -> None:
        """Within two seconds. What was not acknowledged, the other side sends again."""
        ...


class Source(Connector, Protocol):
    """Brings events into a log. `spec.options` has all defaults filled in."""

    def __init__(
        self, spec: SourceSpec, schema: Schema, writer: LogWriter, clock: SystemClock
    ) -> None: ...


class Sink(Connector, Protocol):
    """Delivers the rows of a log, starting where `cursor` stands."""

    def __init__(
        self, spec: SinkSpec, schema: Schema, reader: LogReader, cursor: SinkCursor
    ) -> None: ...


class PluginClass(Protocol):
    """What the class of an entry point has, besides being a Source or a Sink."""

    OPTIONS: ClassVar[Mapping[str, Option]]
    GUARANTEES: ClassVar[tuple[Guarantee, ...]]  # the first is the default

    @staticmethod
    def check(options: Mapping[str, str]) -> None:
        """BadSpec where the options cannot work together; opens nothing."""
        ...


# Every type has these besides its own.
SHARED_OPTIONS: Mapping[str, Option] = {
    "delivery": Option("at-most-once, at-least-once or effectively-once"),
}
SINK_OPTIONS: Mapping[str, Option] = {
    **SHARED_OPTIONS,
    "recovery": Option(
        "precise, repeating, convergent, divergent or gap: what the rows survive; checked "
        "with the query and the delivery"
    ),
    "on.error": Option("'wait' sends again what cannot be delivered, 'log' drops it", "wait"),
}
SOURCE_OPTIONS: Mapping[str, Option] = {
    **SHARED_OPTIONS,
    "dedup": Option("attribute that is the id of an event: an event whose id is known is dropped"),
    "dedup.bound": Option("how many ids are remembered, the last ones of the stream", "100000"),
}
HTTP_OPTIONS: Mapping[str, Option] = {
    "path": Option("a further address for this stream, beside /streams/<stream>"),
}
HTTP_GUARANTEES = (Guarantee.AT_LEAST_ONCE, Guarantee.EFFECTIVELY_ONCE)


def check_source(spec: SourceSpec) -> SourceSpec:
    """The spec under our names with all defaults filled in; BadSpec where it cannot work."""
    kind = SOURCE_ALIASES.get(spec.type, spec.type)
    if why := _explain_unconnected(kind, SOURCES, SOURCES_GROUP, spec.options):
        return replace(spec, unconnected=f"there is no source of type '{spec.type}': {why}")
    table = SIDDHI_SOURCES.get(kind, {})
    options, notes = translate_options(spec.options, table, SOURCE_OPTIONS)
    return _check_own_source(
        replace(spec, type=kind, options=options, notes=(*spec.notes, *notes)), table
    )


def _check_own_source(spec: SourceSpec, table: SiddhiOptions) -> SourceSpec:
    if spec.type == "http":
        options = _fill_options(
            spec.type, spec.options, {**SOURCE_OPTIONS, **HTTP_OPTIONS}, HTTP_GUARANTEES, table
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
        known_type = find_source_type(spec.type)
        known = {**SOURCE_OPTIONS, **known_type.options}
        can = (
            _add_effectively_once(known_type.guarantees)
            if spec.options.get("dedup")
            else known_type.guarantees
        )
        options = _fill_options(spec.type, spec.options, known, can, table)
        known_type.check(options)
        if not spec.unconnected:
            _check_mapping(spec.type, spec.map, known_type)
    return replace(spec, options=options)


def check_sink(spec: SinkSpec) -> SinkSpec:
    """As `check_source`."""
    kind = SINK_ALIASES.get(spec.type, spec.type)
    if why := _explain_unconnected(kind, SINKS, SINKS_GROUP, spec.options):
        return replace(spec, unconnected=f"there is no sink of type '{spec.type}': {why}")
    table = SIDDHI_SINKS.get(kind, {})
    given, notes = translate_options(spec.options, table, SINK_OPTIONS)
    known_type = find_sink_type(kind)
    known = {**SINK_OPTIONS, **known_type.options}
    options = _fill_options(kind, given, known, known_type.guarantees, table)
    known_type.check(options)
    if not spec.unconnected:
        _check_mapping(kind, spec.map, known_type)
    return replace(spec, type=kind, options=options, notes=(*spec.notes, *notes))


def _explain_unconnected(
    kind: str, ours: Mapping[str, ConnectorType], group: str, options: Mapping[str, str]
) -> str:
    """What to use instead of a type that only Siddhi has; '' where a connector is installed."""
    listens = kind == "cdc" and options.get("mode", "listening").lower() == "listening"
    why = explain_unconnected(kind) if listens or kind not in ours else ""
    if why:
        from importlib.metadata import entry_points

        if any(plugin.name == kind for plugin in entry_points(group=group)):
            return ""
    return why


def _check_mapping(kind: str, mapping: MapSpec, known_type: ConnectorType) -> None:
    if known_type.maps and mapping.type not in known_type.maps:
        known = ", ".join(known_type.maps)
        raise BadSpec(f"'{kind}' is mapped as one of: {known}; not as {mapping.type}", "map")


def find_source_type(kind: str) -> ConnectorType:
    if kind in SOURCES:
        return SOURCES[kind]
    return _describe_plugin(
        _find_plugin(kind, SOURCES_GROUP, "source", (*SOURCES, "http", *SOURCE_ALIASES))
    )


def find_sink_type(kind: str) -> ConnectorType:
    if kind in SINKS:
        return SINKS[kind]
    return _describe_plugin(
        _find_plugin(kind, SINKS_GROUP, "sink", (*SINKS, *SINK_ALIASES, "topic"))
    )


def load_source_class(kind: str) -> type[Source]:
    found: type[Source] = _load_class(find_source_type(kind))
    return found


def load_sink_class(kind: str) -> type[Sink]:
    found: type[Sink] = _load_class(find_sink_type(kind))
    return found


def parse_source(
    stream: str, annotation: AnnotationLike, schema: Schema | None = None
) -> SourceSpec:
    """The spec of one `@source(...)`, checked; its mapping too where the schema is given."""
    kind, options, parsed = _split_annotation(annotation, "source", SOURCES, schema)
    spec = check_source(
        SourceSpec(stream, kind, options, parsed.spec, parsed.notes, parsed.unconnected)
    )
    if spec.unconnected:
        return spec
    mapping = spec.map
    if spec.options["dedup"]:
        DedupSpec.parse(spec, schema)
    if schema is not None and mapping != MapSpec():  # plain JSON takes every schema
        from edgewise.gateway.mappers import check_map

        check_map(mapping, schema)
    return spec


def parse_sink(stream: str, annotation: AnnotationLike, schema: Schema | None = None) -> SinkSpec:
    """The spec of one `@sink(...)`, checked; its mapping too where the schema is given."""
    return parse_sinks(stream, annotation, schema)[0]


def parse_sinks(
    stream: str, annotation: AnnotationLike, schema: Schema | None = None
) -> tuple[SinkSpec, ...]:
    """As `parse_sink`: one spec, or one for each destination of its `@distribution`."""
    kind, options, parsed = _split_annotation(annotation, "sink", SINKS, schema)
    spec = SinkSpec(stream, kind, options, parsed.spec, parsed.notes, parsed.unconnected)
    return tuple(
        _check_parsed_sink(each, schema) for each in split_destinations(spec, annotation, schema)
    )


def _check_parsed_sink(given: SinkSpec, schema: Schema | None) -> SinkSpec:
    spec = check_sink(given)
    if spec.unconnected:
        return spec
    mapping = spec.map
    if schema is not None and mapping != MapSpec():
        from edgewise.gateway.renderers import build_renderer

        build_renderer(mapping, schema)
    return spec


def _split_annotation(
    annotation: AnnotationLike, word: str, ours: Mapping[str, ConnectorType], schema: Schema | None
) -> tuple[str, dict[str, str], ParsedMap]:
    options = {key.lower(): value for key, value in annotation.pairs}
    kind = options.pop("type", "")
    if not kind:
        raise BadSpec(f"@{annotation.name} needs a type, such as type='http'", "type")
    default_map = ours[kind].default_map if kind in ours else MapSpec().type
    names = () if schema is None else schema.names
    for inner in annotation.nested:
        if inner.name.lower() not in INNER:
            near = difflib.get_close_matches(inner.name.lower(), INNER, n=1)
            hint = f"did you mean @{near[0]}?" if near else f"known: @{', @'.join(INNER)}"
            raise BadSpec(f"@{annotation.name} takes no @{inner.name}; {hint}")
    return kind, options, parse_map(annotation, word, default_map, names)


def build_ingest_config(
    specs: Iterable[SourceSpec], config: IngestConfig | None = None
) -> IngestConfig:
    """The config of the ingest server for all `@source(type='http')` of an app."""
    from edgewise.gateway.ingest_config import IngestConfig

    base = config or IngestConfig()
    paths, maps, keyed = dict(base.paths), dict(base.maps), set(base.keyed)
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
    return replace(base, paths=paths, maps=maps, keyed=frozenset(keyed))


def _find_plugin(kind: str, group: str, word: str, ours: tuple[str, ...]) -> EntryPoint:
    from importlib.metadata import entry_points  # slow to load, and most apps need none

    plugins = {p.name: p for p in entry_points(group=group)}
    if kind in plugins:
        return plugins[kind]
    known = sorted({*ours, *plugins})
    near = difflib.get_close_matches(kind, (*known, *list_unconnected()), n=1)
    hint = f"did you mean '{near[0]}'?" if near else f"known: {', '.join(known)}"
    raise BadSpec(f"no {word} of type '{kind}'; {hint}")


def _describe_plugin(plugin: EntryPoint) -> ConnectorType:
    plugin_class: type[PluginClass] = plugin.load()
    return ConnectorType(
        plugin.value, plugin_class.OPTIONS, plugin_class.GUARANTEES, plugin_class.check
    )


def _load_class(known_type: ConnectorType) -> Any:
    module, _, name = known_type.class_path.partition(":")
    with name_missing_extra():
        return attrgetter(name)(import_module(module))


def _fill_options(
    kind: str,
    given: Mapping[str, str],
    known: Mapping[str, Option],
    guarantees: tuple[Guarantee, ...],
    siddhi: SiddhiOptions,
) -> dict[str, str]:
    every = {**SHARED_OPTIONS, **known}
    for name in given:
        if name not in every:
            near = difflib.get_close_matches(name, (*every, *siddhi), n=1)
            hint = f"did you mean '{near[0]}'?" if near else f"known: {', '.join(sorted(every))}"
            raise BadSpec(f"'{kind}' has no option '{name}'; {hint}", name)
    options = dict(given)
    for name, option in every.items():
        if option.default is None and name not in given:
            raise BadSpec(f"'{kind}' needs the option '{name}': {option.doc}", name)
        options.setdefault(name, option.default or "")
    options["delivery"] = _parse_delivery(kind, options["delivery"], guarantees).value
    return options


def _add_effectively_once(can: tuple[Guarantee, ...]) -> tuple[Guarantee, ...]:
    """At least once, with known ids dropped, is effectively once."""
    more = Guarantee.AT_LEAST_ONCE in can and Guarantee.EFFECTIVELY_ONCE not in can
    return (*can, Guarantee.EFFECTIVELY_ONCE) if more else can


def _parse_delivery(kind: str, asked: str, possible: tuple[Guarantee, ...]) -> Guarantee:
    if not asked:
        return possible[0]
    can = ", ".join(g.value for g in possible)
    for guarantee in possible:
        if guarantee.value == asked:
            return guarantee
    raise BadSpec(f"'{kind}' cannot give '{asked}' delivery; it gives: {can}", "delivery")
