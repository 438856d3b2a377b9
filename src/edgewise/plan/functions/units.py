"""Declare the `unitconversion:` functions: a number in one unit as a number in another.

Factors are those of the original, whose pounds, ounces, stones, tons and years are rounded. A null
argument drops the event.
"""

from __future__ import annotations

from edgewise.plan.functions.table import DOUBLE, NUMBER, Function, scalar

IN_CM, FT_CM, YD_CM, MI_CM = 2.54, 30.48, 91.44, 160_934.4

FACTORS: dict[str, dict[str, float]] = {
    "cm": {
        "mm": 10, "um": 1e4, "nm": 1e7, "m": 0.01, "km": 1e-5, "in": 1 / IN_CM, "ft": 1 / FT_CM,
        "yd": 1 / YD_CM, "mi": 1 / MI_CM,
    },
    "m": {"cm": 100, "mm": 1000, "ft": 100 / FT_CM, "yd": 100 / YD_CM, "s": 60},
    "km": {
        "m": 1000, "cm": 1e5, "mm": 1e6, "um": 1e9, "nm": 1e12, "in": 1e5 / IN_CM,
        "ft": 1e5 / FT_CM, "yd": 1e5 / YD_CM, "mi": 1e5 / MI_CM,
    },
    "Mm": {"km": 1000},
    "mi": {"km": 1.609344},
    "g": {"kg": 0.001, "mg": 1000, "ug": 1e6},
    "kg": {
        "g": 1000, "t": 0.001, "lb": 2.2046224760379585, "oz": 35.27396583786957,
        "st": 0.157473, "LT": 0.000984207, "ST": 0.00110231,
    },
    "t": {"g": 1e6, "kg": 1000},
    "l": {"ml": 1000, "m3": 0.001},
    "ml": {"l": 0.001},
    "m3": {"l": 1000},
    "s": {"ms": 1000, "us": 1e6, "ns": 1e9},
    "h": {"m": 60, "s": 3600},
    "d": {"h": 24},
    "y": {"d": 365.2525},
}  # fmt: skip


def _conversion(source: str, target: str, factor: float) -> Function:
    def convert(value: float) -> float:
        return float(value) * factor

    name = f"unitconversion:{source}To{target}"
    return scalar(name, NUMBER, returns=DOUBLE, python=convert, drops_null=True)


FUNCTIONS = tuple(
    _conversion(source, target, factor)
    for source, targets in FACTORS.items()
    for target, factor in targets.items()
)
