"""Line charts as SVG, without a library: two axes with ticks, one line per name."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

WIDTH, HEIGHT = 640, 360
LEFT, RIGHT, TOP, BOTTOM = 70, 20, 40, 40
TICKS = 4

Line = Sequence[tuple[float, float]]


def lines_svg(title: str, lines: Mapping[str, Line], colours: Mapping[str, str]) -> str:
    points = [p for line in lines.values() for p in line]
    x_max, y_max = (_round_up(max(p[i] for p in points)) for i in (0, 1))

    def place(x: float, y: float) -> tuple[float, float]:
        across = LEFT + x / x_max * (WIDTH - LEFT - RIGHT)
        return across, HEIGHT - BOTTOM - y / y_max * (HEIGHT - BOTTOM - TOP)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-size="12">',
        '<rect width="100%" height="100%" fill="#fff"/>',
        f'<text x="{LEFT}" y="20">{title}</text>',
    ]
    for i in range(TICKS + 1):
        across, up = place(x_max * i / TICKS, y_max * i / TICKS)
        parts.append(f'<path d="M{LEFT} {up:.0f}H{WIDTH - RIGHT}" stroke="#ddd"/>')
        parts.append(_text(LEFT - 6, up + 4, f"{y_max * i / TICKS:,.4g}", "end"))
        parts.append(_text(across, HEIGHT - BOTTOM + 18, f"{x_max * i / TICKS:,.4g}", "middle"))
    for i, (name, line) in enumerate(lines.items()):
        colour = colours.get(name, "#333")
        track = " ".join("{:.1f},{:.1f}".format(*place(*point)) for point in line)
        parts.append(
            f'<polyline points="{track}" fill="none" stroke="{colour}" stroke-width="2"/>'
        )
        parts.append(
            f'<text x="{LEFT + 10}" y="{TOP + 16 * (i + 1)}" fill="{colour}">{name}</text>'
        )
    return "\n".join([*parts, "</svg>"]) + "\n"


def _text(x: float, y: float, text: str, anchor: str, colour: str = "#666") -> str:
    return f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}" fill="{colour}">{text}</text>'


def _round_up(value: float) -> float:
    """To a number people read easily."""
    if value <= 0:
        return 1.0
    unit = 10.0 ** math.floor(math.log10(value))
    return next(n * unit for n in _steps() if n * unit >= value)


def _steps() -> Iterator[float]:
    yield from (1, 1.2, 1.6, 2, 2.4, 3.2, 4, 6, 8, 10)
