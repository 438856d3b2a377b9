"""Random calls of functions, for both engines: a call, and events with the values it is given.

Values come from small pools, so that equal texts, bad numbers, nulls and extremes meet often. What
differs on purpose (`docs/reference/language.md`) is in no pool.
"""

from __future__ import annotations

import random
from typing import Any

START = 1000
HEAD = "define stream S (s string, t string, v int, w int, l long, p double, q double);"
TEXTS = (None, "", "a", "abc", "aBc", "hello world", "12", "-7", "2.5", "x1y22z", "7f", "é", " b ")
INTS = (None, 0, 1, 2, -1, 7, -13, 100, 2147483647, -2147483648)
LONGS = (None, 0, 1, -5, 1234567890123, 9223372036854775807)
DOUBLES = (None, 0.0, 0.5, -1.5, 2.5, 3.75, 10.0, 1e10, -2.25)
POSITIVE = (None, 0.25, 0.5, 1.5, 2.5, 10.0, 1e10)
PATTERNS = ("a", "[a-z]+", "(a)(b)?", "\\d+", "b|c", "^a.*", "x*", "(?i)ABC", "[^a]")

CALLS = (
    *(f"math:{name}(p)" for name in (
        "abs", "atan", "cbrt", "cos", "exp", "floor", "sin", "tan", "tanh", "toDegrees",
        "toRadians", "ceil", "getExponent", "signum", "round", "isNan", "isInfinite",
    )),
    *(f"math:{name}(v)" for name in ("abs", "bin", "hex", "oct", "cbrt", "signum")),
    *(f"math:{name}(l)" for name in ("abs", "bin", "hex", "oct", "floor")),
    "math:ln(q)", "math:log10(q)", "math:sqrt(q)", "math:log(q, 3)", "math:power(q, 2)",
    "math:max(v, p)", "math:min(l, p)", "math:copySign(p, v)", "math:atan(v, p)",
    "math:parseInt(s)", "math:parseLong(s)", "math:parseDouble(s)", "math:conv(s, 16, 2)",
    *(f"regex:{name}('{pattern}', s)" for name in ("find", "matches", "lookingAt")
      for pattern in PATTERNS),
    *(f"regex:group('{pattern}', s, {n})" for pattern in PATTERNS[:4] for n in (0, 1)),
    "list:size(list:create(s, t))", "list:indexOf(list:create(s, t, s), t)",
    "list:contains(list:create(v, w), v)", "list:get(list:create(v, w), w)",
    "map:get(map:create('a', v, 'b', w), s)", "map:get(map:put(map:create('a', v), s, w), 'a')",
    "map:isMap(map:create('a', v))", "map:isMap(s)",
)  # fmt: skip


def make_call(dice: random.Random) -> tuple[str, list[tuple[str, int, list[Any]]]]:
    """An app with one call, and its events."""
    app = f"{HEAD} @info(name='q') from S select v, {dice.choice(CALLS)} as r insert into O;"
    events = []
    for i in range(8):
        pools = (TEXTS, TEXTS, INTS, INTS, LONGS, DOUBLES, POSITIVE)
        events.append(("S", START + 10 * (i + 1), [dice.choice(pool) for pool in pools]))
    return app, events
