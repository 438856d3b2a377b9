"""Declare the `geo:` functions: points and GeoJSON geometries on the plane of degrees.

Geometry is Shapely's (GEOS, the library that the original's was ported to). A fence is GeoJSON,
with single quotes if one likes, or a point with a `radius` in metres. Those that look up names of
places need a data file or a service, and are not here. Processors of `geo:` use this module too.
"""

from __future__ import annotations

import math
from functools import cache, lru_cache
from typing import Any

from edgewise.errors import BadEvent
from edgewise.event.types import AttrType
from edgewise.plan.functions import json_text
from edgewise.plan.functions.table import BOOL, DOUBLE, STRING, Types, overloaded, scalar

EARTH_M = 6_371_000
DEGREE_M = 110_574.61087757687  # metres of a degree
FENCES_MAX = 256  # geometries kept as read
REAL: Types = frozenset({AttrType.FLOAT, DOUBLE})
FENCE: Types = frozenset({STRING})


def distance(latitude: float, longitude: float, latitude2: float, longitude2: float) -> float:
    """Metres along the surface of a sphere."""
    here, there = math.radians(latitude), math.radians(latitude2)
    across = math.radians(longitude2 - longitude)
    half = math.sin((there - here) / 2) ** 2
    half += math.cos(here) * math.cos(there) * math.sin(across / 2) ** 2
    return EARTH_M * 2 * math.atan2(math.sqrt(half), math.sqrt(1 - half))


@cache
def load_shapely() -> Any:
    """Loaded when first asked: most apps have no map, and it costs a tenth of a second."""
    import shapely.geometry

    return shapely


@lru_cache(maxsize=FENCES_MAX)
def read_geometry(text: str) -> Any:
    shapely = load_shapely()
    try:
        found: Any = json_text.parse(text)
        if "radius" in found:
            centre = shapely.Point(*map(float, found["coordinates"][:2]))
            return centre.buffer(float(found["radius"]) / DEGREE_M)
        return shapely.geometry.shape(found)
    except BadEvent:
        raise
    except (TypeError, ValueError, KeyError, AttributeError, shapely.errors.ShapelyError) as why:
        raise BadEvent(f"'{text}' is no GeoJSON geometry: {why}") from why


def read_shape(*args: Any) -> tuple[Any, list[Any]]:
    """A point from longitude and latitude, or a geometry from its text; and what follows."""
    if isinstance(args[0], str):
        return read_geometry(args[0]), list(args[1:])
    return load_shapely().Point(float(args[0]), float(args[1])), list(args[2:])


def within(*args: Any) -> bool:
    shape, rest = read_shape(*args)
    return bool(read_geometry(rest[0]).contains(shape))


def intersects(*args: Any) -> bool:
    shape, rest = read_shape(*args)
    return bool(read_geometry(rest[0]).intersects(shape))


def within_distance(*args: Any) -> bool:
    shape, rest = read_shape(*args)
    return bool(shape.distance(read_geometry(rest[0])) <= float(rest[1]) / DEGREE_M)


_POINT, _SHAPE = (REAL, REAL, FENCE), (FENCE, FENCE)

FUNCTIONS = (
    scalar("geo:distance", *[REAL] * 4, returns=DOUBLE, python=distance, drops_null=True),
    overloaded("geo:within", _POINT, _SHAPE, returns=BOOL, python=within, drops_null=True),
    overloaded("geo:intersects", _POINT, _SHAPE, returns=BOOL, python=intersects, drops_null=True),
    overloaded(
        "geo:withinDistance", (*_POINT, REAL), (*_SHAPE, REAL),
        returns=BOOL, python=within_distance, drops_null=True,
    ),
)  # fmt: skip
