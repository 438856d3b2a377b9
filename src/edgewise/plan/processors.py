"""Declare the stream processors of namespaces: what each takes and which attributes it adds.

One row serves the checker, `explain` and the kernels, which have an operator of the same name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from edgewise.event.schema import Attribute
from edgewise.event.types import AttrType
from edgewise.plan.exprs import Const, Expr
from edgewise.plan.functions import ANY, NUMBER, SET, TEXT, TRUTH, WHOLE, Types, java_regex

STRING, INT, LONG = AttrType.STRING, AttrType.INT, AttrType.LONG
DOUBLE, BOOL, OBJECT = AttrType.DOUBLE, AttrType.BOOL, AttrType.OBJECT
Args = tuple[Expr, ...]
Adds = Callable[[Args], tuple[Attribute, ...]]
JSON: Types = frozenset({STRING, OBJECT})
REAL: Types = frozenset({AttrType.FLOAT, DOUBLE})
STAMP: Types = frozenset({LONG})
KEY = ANY - SET
TOP_MAX = 1000  # of topK and bottomK


@dataclass(frozen=True, slots=True)
class StreamProcessor:
    """`overloads` are the legal argument lists; a `variadic` one repeats its last argument."""

    name: str
    overloads: tuple[tuple[Types, ...], ...]
    usage: str
    adds: Adds
    variadic: bool = False
    rule: Callable[[Args], str] | None = None


def adds(**attributes: AttrType) -> Adds:
    fixed = tuple(Attribute(name, kind) for name, kind in attributes.items())
    return lambda _args: fixed


# Regression.

_SETTINGS: dict[str, tuple[int, int, int]] = {
    # where a constant says that settings are given, arguments before y with them and without
    "regress": (0, 3, 0),
    "forecast": (1, 4, 1),
    "outlier": (1, 4, 1),
    "lengthtimeregress": (2, 4, 2),
    "lengthtimeforecast": (3, 5, 3),
    "lengthtimeoutlier": (3, 5, 3),
}


def count_settings(name: str, args: Args) -> int:
    """How many arguments stand before y."""
    at, given, plain = _SETTINGS[name.lower().rpartition(":")[2]]
    return given if len(args) > at and isinstance(args[at], Const) else plain


def _regression_adds(name: str, *more: Attribute) -> Adds:
    def found(args: Args) -> tuple[Attribute, ...]:
        slopes = len(args) - count_settings(name, args) - 1
        betas = (Attribute(f"beta{i}", DOUBLE) for i in range(slopes + 1))
        return (Attribute("stderr", DOUBLE), *betas, *more)

    return found


def _regression_rule(name: str) -> Callable[[Args], str]:
    def rule(args: Args) -> str:
        if len(args) - count_settings(name, args) < 2:
            return "a regression takes y and at least one x, after its settings"
        return ""

    return rule


_EXTRAS = {"forecast": Attribute("forecastY", DOUBLE), "outlier": Attribute("outlier", BOOL)}


def _regression(name: str) -> StreamProcessor:
    kind = next((k for k in _EXTRAS if name.lower().endswith(k)), "")
    more = (_EXTRAS[kind],) if kind else ()
    full = f"timeseries:{name}"
    return StreamProcessor(
        full,
        ((NUMBER, NUMBER),),
        f"write #{full}(settings, y, x...)",
        _regression_adds(full, *more),
        variadic=True,
        rule=_regression_rule(full),
    )


# The most and the least frequent.


def _top_adds(word: str) -> Adds:
    def found(args: Args) -> tuple[Attribute, ...]:
        k = args[-1].value if isinstance(args[-1], Const) else 0
        return tuple(
            Attribute(f"{word}{i}{part}", kind)
            for i in range(1, min(k, TOP_MAX) + 1)
            for part, kind in (("Element", args[0].type), ("Frequency", LONG))
        )

    return found


def _top_rule(args: Args) -> str:
    sizes = [a.value for a in args[1:] if isinstance(a, Const)]
    if len(sizes) < len(args) - 1:
        return "lengths, times and k must be constants"
    if any(size <= 0 for size in sizes) or sizes[-1] > TOP_MAX:
        return f"lengths and times are above 0, and k from 1 to {TOP_MAX}"
    return ""


def _top(word: str) -> tuple[StreamProcessor, ...]:
    name = f"extrema:{word}K"
    found = _top_adds(word)
    batch = (ANY, WHOLE, WHOLE)
    return (
        StreamProcessor(name, ((ANY, WHOLE),), f"write #{name}(value, k)", found, rule=_top_rule),
        StreamProcessor(
            f"{name}LengthBatch", (batch,), f"write #{name}LengthBatch(value, length, k)", found,
            rule=_top_rule,
        ),
        StreamProcessor(
            f"{name}TimeBatch", (batch,), f"write #{name}TimeBatch(value, time, k)", found,
            rule=_top_rule,
        ),
    )  # fmt: skip


# Sketches.


def _sketch_rule(args: Args) -> str:
    settings = [a.value for a in args[1:] if isinstance(a, Const)]
    if len(settings) < len(args) - 1:
        return "the relative error and the confidence must be constants"
    if any(not 0 < value < 1 for value in settings):
        return "the relative error and the confidence are between 0 and 1"
    if len(settings) == 1:
        return "a relative error is given with a confidence: (value, 0.01, 0.95)"
    return ""


def _distinct_rule(args: Args) -> str:
    problem = _sketch_rule(args)
    if problem or len(args) < 2:
        return problem
    error, confidence = (a.value for a in args[1:] if isinstance(a, Const))
    if not any(abs(confidence - known) < 1e-7 for known in (0.65, 0.95, 0.99)):
        return "the confidence is 0.65, 0.95 or 0.99"
    return "" if error <= 0.26 else "the relative error is at most 0.26"


def _sketch(name: str, rule: Callable[[Args], str]) -> StreamProcessor:
    added = {f"{name}{part}": LONG for part in ("", "LowerBound", "UpperBound")}
    full = f"approximate:{name}"
    return StreamProcessor(
        full,
        ((ANY,), (ANY, REAL), (ANY, REAL, REAL)),
        f"write #{full}(value) or #{full}(value, 0.01, 0.95)",
        adds(**added),
        rule=rule,
    )


# Local extremes.


def _extreme_rule(args: Args) -> str:
    if not all(isinstance(a, Const) for a in args[1:]):
        return "all but the first argument must be constants"
    wanted = str(args[-1].value).lower() if isinstance(args[-1], Const) else ""
    return "" if wanted in {"min", "max", "minmax"} else "say 'min', 'max' or 'minmax'"


def _extremes(space: str) -> tuple[StreamProcessor, ...]:
    kind = adds(extremaType=STRING)
    return (
        StreamProcessor(
            f"{space}:kernelMinMax", ((NUMBER, NUMBER, WHOLE, TEXT),),
            f"write #{space}:kernelMinMax(value, bandwidth, size, 'max')", kind,
            rule=_extreme_rule,
        ),
        StreamProcessor(
            f"{space}:kalmanMinMax", ((NUMBER, NUMBER, NUMBER, WHOLE, TEXT),),
            f"write #{space}:kalmanMinMax(value, q, r, size, 'max')", kind, rule=_extreme_rule,
        ),
    )  # fmt: skip


# Tokens.


def _tokenize_rule(args: Args) -> str:
    if not all(isinstance(a, Const) for a in args[1:]):
        return "the regular expression must be a constant"
    return java_regex.has_pattern(1)(args)


def _slack_rule(args: Args) -> str:
    if not all(isinstance(a, Const) for a in args[1:] if a.type is BOOL):
        return "its options must be constants"
    return ""


# Clusters.


def cluster_settings(name: str, args: Args) -> tuple[int, tuple[int, float, int, int]]:
    """How many arguments are settings, and: clusters, decay rate, iterations, events of a batch.

    Settings are constants in front: the number of clusters, a fraction that is the decay rate,
    and whole numbers for iterations and batch.
    """
    constants = []
    for arg in args:
        if not isinstance(arg, Const):
            break
        constants.append(arg)
    whole = [c.value for c in constants if c.type in WHOLE]
    decay = next((c.value for c in constants if c.type not in WHOLE), 0.01)
    if name.lower().endswith("incremental"):
        return len(constants), (whole[0] if whole else 0, decay, 2, 1)
    sizes = (*whole, *(0, 50, 20)[len(whole) :])
    return len(constants), (sizes[0], decay, sizes[1], sizes[2])


def _clusters(name: str) -> StreamProcessor:
    def found(args: Args) -> tuple[Attribute, ...]:
        axes = range(1, len(args) - cluster_settings(name, args)[0] + 1)
        coordinates = (Attribute(f"closestCentroidCoordinate{i}", DOUBLE) for i in axes)
        return (Attribute("euclideanDistanceToClosestCentroid", DOUBLE), *coordinates)

    def rule(args: Args) -> str:
        count, (k, decay, most, batch) = cluster_settings(name, args)
        if count == len(args) or min(k, most, batch) < 1:
            return "say the number of clusters, settings above 0, then the features"
        return "" if 0 < decay < 1 else "the decay rate is between 0 and 1"

    usage = f"write #streamingml:{name}(clusters, [settings], feature...)"
    shape = ((NUMBER, NUMBER),)
    return StreamProcessor(f"streamingml:{name}", shape, usage, found, variadic=True, rule=rule)


# Things on a map.

_POINT, _SHAPE = (REAL, REAL), (TEXT,)
_SENSOR = (TEXT, REAL, REAL, TEXT, TEXT, REAL, STAMP)
_GEO = (
    StreamProcessor(
        "geo:crosses", ((TEXT, *_POINT, TEXT), (TEXT, *_SHAPE, TEXT)),
        "write #geo:crosses(id, longitude, latitude, fence) or #geo:crosses(id, shape, fence)",
        adds(crosses=BOOL),
    ),
    StreamProcessor(
        "geo:stationary", ((TEXT, *_POINT, NUMBER), (TEXT, *_SHAPE, NUMBER)),
        "write #geo:stationary(id, longitude, latitude, radius)", adds(stationary=BOOL),
    ),
    StreamProcessor(
        "geo:proximity", ((TEXT, *_POINT, NUMBER), (TEXT, *_SHAPE, NUMBER)),
        "write #geo:proximity(id, longitude, latitude, radius)",
        adds(proximityWith=STRING, inCloseProximity=BOOL),
    ),
    StreamProcessor(
        "geo:closestPoints", ((*_POINT, TEXT), (*_SHAPE, TEXT)),
        "write #geo:closestPoints(longitude, latitude, fence)",
        adds(**{
            f"closestPointOf{a}From{b}{axis}": DOUBLE
            for a, b in ((1, 2), (2, 1)) for axis in ("Latitude", "Longitude")
        }),
    ),
    StreamProcessor(
        "geo:locationApproximate", (_SENSOR,),
        "write #geo:locationApproximate(id, latitude, longitude, proximity, sensor, weight, time)",
        adds(averagedLatitude=DOUBLE, averagedLongitude=DOUBLE, averageExist=BOOL),
    ),
)  # fmt: skip

_FLAGS = (STAMP, WHOLE, WHOLE, TRUTH)
_ADAPTIVE = (STAMP, NUMBER, WHOLE, WHOLE, WHOLE, TRUTH, REAL, REAL)

PROCESSORS = (
    StreamProcessor(
        "str:tokenize", ((TEXT, TEXT), (TEXT, TEXT, TRUTH)),
        "write #str:tokenize(text, ',') or #str:tokenize(text, ',', true)", adds(token=STRING),
        rule=_tokenize_rule,
    ),
    *(
        StreamProcessor(
            f"json:{name}", ((JSON, TEXT), (JSON, TEXT, TRUTH)),
            f"write #json:{name}(json, '$.path') or #json:{name}(json, '$.path', false)",
            adds(jsonElement=kind),
        )
        for name, kind in (("tokenize", STRING), ("tokenizeAsObject", OBJECT))
    ),
    StreamProcessor(
        "list:tokenize", ((SET,),), "write #list:tokenize(list)", adds(index=INT, value=OBJECT),
        variadic=True,
    ),
    StreamProcessor(
        "map:tokenize", ((SET,),), "write #map:tokenize(map)", adds(key=OBJECT, value=OBJECT),
        variadic=True,
    ),
    StreamProcessor(
        "unique:deduplicate", ((KEY, WHOLE),), "write #unique:deduplicate(key, 1 min)", adds()
    ),
    StreamProcessor(
        "reorder:kslack",
        (*(_FLAGS[:n] for n in range(1, 5)), (STAMP, TRUTH), (STAMP, WHOLE, TRUTH)),
        "write #reorder:kslack(timestamp[, timeout[, max k]][, discard late])", adds(),
        rule=_slack_rule,
    ),
    StreamProcessor(
        "reorder:akslack", tuple(_ADAPTIVE[:n] for n in (2, 3, 4, 5, 6, 8)),
        "write #reorder:akslack(timestamp, value[, batch[, timeout[, max k[, discard]]]])",
        adds(), rule=_slack_rule,
    ),
    *_top("top"),
    *_top("bottom"),
    StreamProcessor(
        "extrema:minMax", ((NUMBER, WHOLE, WHOLE, NUMBER, NUMBER, TEXT),),
        "write #extrema:minMax(value, pre, post, pre change, post change, 'max')",
        adds(extremaType=STRING, preBound=INT, postBound=INT), rule=_extreme_rule,
    ),
    *_extremes("extrema"),
    *_extremes("timeseries"),
    *map(_regression, (
        "regress", "forecast", "outlier", "lengthTimeRegress", "lengthTimeForecast",
        "lengthTimeOutlier",
    )),
    *_GEO,
    _clusters("kMeansIncremental"),
    _clusters("kMeansMiniBatch"),
    _sketch("count", _sketch_rule),
    _sketch("distinctCount", _distinct_rule),
    _sketch("distinctCountEver", _distinct_rule),
)  # fmt: skip
