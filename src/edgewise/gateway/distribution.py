"""Split a sink with `@distribution` into one sink for each `@destination`. Pure.

    @sink(type='http', @distribution(strategy='roundRobin',
        @destination(publisher.url='http://a'), @destination(publisher.url='http://b')))

Which rows a destination gets follows from the offset of a row (`roundRobin`) or from an attribute
(`partitioned`), so it is the same after a restart, and each destination keeps its own position.
Used by `connectors`.
"""

from __future__ import annotations

from dataclasses import replace

from edgewise.event.schema import Schema
from edgewise.gateway.map_annotation import AnnotationLike
from edgewise.gateway.spec import BadSpec, Share, SinkSpec

STRATEGIES = ("broadcast", "partitioned", "roundRobin")
DESTINATIONS_MAX = 64


def split_destinations(
    spec: SinkSpec, annotation: AnnotationLike, schema: Schema | None
) -> tuple[SinkSpec, ...]:
    """BadSpec where the distribution cannot work; the sink itself where it has none."""
    found = [inner for inner in annotation.nested if inner.name.lower() == "distribution"]
    if not found:
        return (spec,)
    given = {key.lower(): value for key, value in found[0].pairs}
    known = {name.lower(): name for name in STRATEGIES}
    strategy = known.get(given.get("strategy", "").lower(), "")
    if not strategy:
        one = ", ".join(STRATEGIES)
        raise BadSpec(f"@distribution needs strategy='...', one of: {one}", "strategy")
    destinations = [inner for inner in found[0].nested if inner.name.lower() == "destination"]
    if not 1 <= len(destinations) <= DESTINATIONS_MAX:
        raise BadSpec(f"@distribution has 1 to {DESTINATIONS_MAX} @destination(...)", "strategy")
    key = _find_key(given, schema) if strategy == "partitioned" else -1
    return tuple(
        replace(
            spec,
            options={**spec.options, **{name.lower(): value for name, value in each.pairs}},
            share=Share(strategy, index, len(destinations), key),
        )
        for index, each in enumerate(destinations)
    )


def _find_key(given: dict[str, str], schema: Schema | None) -> int:
    name = given.get("partitionkey", "")
    if not name:
        raise BadSpec("strategy='partitioned' needs partitionKey='attribute'", "strategy")
    if schema is None:
        return 0
    if schema.index(name) < 0:
        raise BadSpec(
            f"partitionKey='{name}': {schema.name} has no such attribute", "partitionKey"
        )
    return schema.index(name)
