"""Draw a plan as SVG: streams and queries from left to right, fragments as shared background.

Streams and stores are pills, queries are cards: what they read and select, then what they keep,
then how they answer when they are fed again. Where everything stands is for `layers` to say.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from xml.sax.saxutils import escape

from edgewise.plan.explain import (
    NO_NOTES,
    FragmentOutline,
    Outline,
    QueryOutline,
    build_outline,
    describe_execution,
    describe_input,
)
from edgewise.plan.layers import Box, Gaps, Layers, build_layers, position_boxes
from edgewise.plan.nodes import App

CARD_WIDTH, PILL_WIDTH, PILL_HEIGHT = 364, 190, 36
MARGIN, PADDING, LINE, HEAD, LABEL = 48, 18, 18, 92, 22
GAPS = Gaps(76, 30)
WIDTH_MIN = 900
TEXT_MAX = 46  # characters of one line of a clause, each as wide as the other
FACT_MAX = 52  # characters of one line of what is kept
LINES_MAX = 5  # lines of one clause
NAME_MAX = 24  # characters of a pill
LABEL_MAX = 110  # characters of one line above a fragment

NAMESPACE = "http://www.w3.org/2000/svg"
ARROW = """<defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7"
  markerHeight="7" orient="auto"><path d="M0,0.6 L8,4 L0,7.4 z"/></marker></defs>"""
STYLE = """
  svg { background: #fbfaf7; font-family: "Inter", "Segoe UI", system-ui, sans-serif;
    font-size: 13px; }
  .title { font-size: 28px; font-weight: 700; fill: #17202e; }
  .under { fill: #667085; }
  .ground { fill: #f1f3f6; stroke: #cfd6df; }
  .ground.keyed { fill: #e8f5ee; stroke: #a9d6bd; }
  .ground.native { fill: #efecfc; stroke: #c4b9ec; }
  .label { font-size: 13px; font-weight: 650; fill: #344054; }
  .aside { font-size: 12px; fill: #667085; }
  .card { fill: #ffffff; stroke: #c9d2dd; }
  .rule { stroke: #e7ebf0; }
  .name { font-size: 14px; font-weight: 700; fill: #17202e; }
  .line { font-size: 11px; fill: #98a2b3; text-anchor: end; }
  .clause { font-family: ui-monospace, "SF Mono", Menlo, "DejaVu Sans Mono", monospace;
    font-size: 11.5px; fill: #344054; }
  .fact { font-size: 11.5px; fill: #667085; }
  .grows { font-size: 11.5px; fill: #b54708; }
  .dot { fill: #12a150; }
  .dot.grows { fill: #dc6803; }
  .dot.empty { fill: #d0d5dd; }
  .pill { fill: #ffffff; stroke: #475467; stroke-width: 1.4; }
  .pill.in { fill: #1e3a5f; stroke: none; }
  .pill.out { fill: #0f766e; stroke: none; }
  .pill.store { fill: #fff4e0; stroke: #d99a2b; }
  .pilltext { text-anchor: middle; fill: #17202e; font-weight: 550; }
  .pilltext.in, .pilltext.out { fill: #ffffff; }
  .edge { fill: none; stroke: #8d9bb0; stroke-width: 1.6; }
  marker path { fill: #8d9bb0; }
"""
LEGEND = (
    ("pill in", "comes in"),
    ("pill", "in between"),
    ("pill out", "goes out"),
    ("pill store", "is kept"),
    ("ground native", "native"),
    ("ground keyed", "kernel by key"),
    ("ground", "kernel, not keyed"),
)
LEGEND_STEP = 136


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a card. `dot` colours the mark before it; `rule` draws a line above it."""

    style: str
    text: str
    dot: str = ""
    rule: bool = False


def explain_svg(app: App, notes: Mapping[str, tuple[str, ...]] = NO_NOTES) -> str:
    """The picture of a plan, as one SVG document; `notes` adds lines to queries by name."""
    found = build_outline(app, notes)
    parts: list[str] = []
    top, width = MARGIN + HEAD, WIDTH_MIN
    for fragment in found.fragments:
        head = _draw_head(fragment)
        drawn = _lay_out(fragment)
        position_boxes(drawn, MARGIN + PADDING, top + PADDING + LABEL * len(head), GAPS)
        right = max(drawn.right, MARGIN + PADDING + max(len(text) * 7 for _, text in head))
        width = max(width, right + PADDING + MARGIN)
        parts += _draw_ground(fragment, head, top, right, drawn.bottom)
        parts += [_draw_edge(route) for route in drawn.routes]
        for query in fragment.queries:
            parts += _draw_card(drawn.boxes[f"q:{query.name}"], query)
        for name in _list_streams(fragment):
            parts += _draw_pill(drawn.boxes[f"s:{name}"], name, _stream_kind(found, name))
        top = drawn.bottom + 2 * PADDING + GAPS.y
    return _draw_document(found, parts, width, top - GAPS.y + MARGIN)


def _draw_head(fragment: FragmentOutline) -> list[tuple[str, str]]:
    """What stands above a fragment: how it runs, and what of its inputs reaches it."""
    found = [("label", _truncate(describe_execution(fragment), LABEL_MAX))]
    found += [
        ("aside", _truncate(f"takes {text}", LABEL_MAX))
        for each in fragment.inputs
        if (text := describe_input(each))
    ]
    return found


def _list_streams(fragment: FragmentOutline) -> list[str]:
    names = [n for q in fragment.queries for n in (*q.reads, q.writes) if n]
    if not fragment.queries:  # a store alone, fed by its inputs
        names = [*(each.stream for each in fragment.inputs), fragment.name]
    return list(dict.fromkeys(names))


def _lay_out(fragment: FragmentOutline) -> Layers:
    boxes = [Box(f"s:{name}", PILL_WIDTH, PILL_HEIGHT) for name in _list_streams(fragment)]
    arrows: list[tuple[str, str]] = []
    if not fragment.queries:
        arrows = [(f"s:{each.stream}", f"s:{fragment.name}") for each in fragment.inputs]
    for query in fragment.queries:
        boxes.append(Box(f"q:{query.name}", CARD_WIDTH, _card_height(_list_lines(query))))
        arrows += [(f"s:{stream}", f"q:{query.name}") for stream in query.reads]
        if query.writes:
            arrows.append((f"q:{query.name}", f"s:{query.writes}"))
    return build_layers(boxes, arrows)


def _stream_kind(found: Outline, name: str) -> str:
    if any(store.endswith(f" {name}") for store in found.stores):
        return "store"
    if name in found.inputs:
        return "in"
    read = {n for f in found.fragments for q in f.queries for n in q.reads}
    return "out" if name in found.sinks or name not in read else ""


# Cards.


def _list_lines(query: QueryOutline) -> list[Line]:
    found = [Line("name", _truncate(query.name, TEXT_MAX - 10))]
    for text in (f"from {query.source}", f"select {query.select}"):
        found += [Line("clause", line) for line in _wrap_text(text)]
    kept = "keeps nothing" if query.state == "none" else f"keeps {query.state}"
    dot = "grows" if query.grows else "empty" if query.state == "none" else "held"
    facts = [Line("fact", line) for line in _wrap_text(kept, FACT_MAX)]
    facts[0] = Line("fact", facts[0].text, dot, rule=True)
    if query.grows:
        facts += [
            Line("grows", line) for line in _wrap_text(f"without end: {query.grows}", FACT_MAX)
        ]
    for note in query.notes:
        facts += [Line("fact", line) for line in _wrap_text(note, FACT_MAX)]
    return found + facts


def _card_height(lines: list[Line]) -> int:
    return 2 * PADDING - 4 + LINE * len(lines) + 8 * sum(line.rule for line in lines)


def _wrap_text(text: str, limit: int = TEXT_MAX) -> list[str]:
    """Lines of at most `limit` characters, broken at spaces, cut after LINES_MAX."""
    lines = [""]
    for word in text.split():
        if lines[-1] and len(lines[-1]) + len(word) + 1 > limit:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    lines = [_truncate(line, limit) for line in lines]
    if len(lines) > LINES_MAX:
        lines = [*lines[: LINES_MAX - 1], lines[LINES_MAX - 1][: limit - 2] + " …"]
    return [line for line in lines if line]


def _truncate(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _draw_card(box: Box, query: QueryOutline) -> list[str]:
    parts = [f'<rect class="card" {_fragment_area(box.x, box.y, box.width, box.height, 12)}/>']
    y, left, right = box.y + PADDING + 10, box.x + PADDING, box.x + box.width - PADDING
    parts.append(_draw_text("line", right, y, f"line {query.line}"))
    for line in _list_lines(query):
        if line.rule:
            parts.append(f'<path class="rule" d="M{left},{y - 6} H{right}"/>')
            y += 8
        indent = 14 if line.style in {"fact", "grows"} else 0
        if line.dot:
            parts.append(f'<circle class="dot {line.dot}" cx="{left + 4}" cy="{y - 4}" r="4"/>')
        parts.append(_draw_text(line.style, left + indent, y, line.text))
        y += LINE
    return parts


# The rest of the picture.


def _draw_ground(
    fragment: FragmentOutline, head: list[tuple[str, str]], top: int, right: int, bottom: int
) -> list[str]:
    kind = "native" if fragment.runs == "native" else fragment.tasks
    width, height = right - MARGIN + PADDING, bottom - top + PADDING
    parts = [f'<rect class="ground {kind}" {_fragment_area(MARGIN, top, width, height, 18)}/>']
    for row, (style, text) in enumerate(head):
        parts.append(_draw_text(style, MARGIN + PADDING, top + 26 + LABEL * row, text))
    return parts


def _draw_edge(route: list[Box]) -> str:
    """One curve, level where it meets a box and straight through the columns between."""
    x, y = route[0].x + route[0].width, route[0].middle
    path = f"M{x},{y}"
    for box in route[1:]:
        end = box.x - (2 if box is route[-1] else 0)
        half = max(24, abs(end - x) // 2)
        path += f" C{x + half},{y} {end - half},{box.middle} {end},{box.middle}"
        x, y = end + box.width, box.middle
        path += f" H{x}" if box is not route[-1] else ""
    return f'<path class="edge" d="{path}" marker-end="url(#arrow)"/>'


def _draw_pill(box: Box, name: str, kind: str) -> list[str]:
    radius = 8 if kind == "store" else box.height // 2
    area = _fragment_area(box.x, box.y, box.width, box.height, radius)
    title = f"<title>{escape(name)}</title>"
    middle = box.x + box.width // 2
    return [
        f'<rect class="pill {kind}" {area}>{title}</rect>',
        _draw_text(f"pilltext {kind}", middle, box.middle + 5, _truncate(name, NAME_MAX)),
    ]


def _fragment_area(x: int, y: int, width: int, height: int, radius: int) -> str:
    return f'x="{x}" y="{y}" width="{width}" height="{height}" rx="{radius}"'


def _draw_text(style: str, x: int, y: int, text: str) -> str:
    return f'<text class="{style}" x="{x}" y="{y}">{escape(text)}</text>'


def _draw_legend(width: int) -> list[str]:
    parts: list[str] = []
    x = width - MARGIN - LEGEND_STEP * len(LEGEND) - 10
    for style, text in LEGEND:
        shape = _fragment_area(x, MARGIN + 54, 26, 14, 4 if "ground" in style else 7)
        parts += [
            f'<rect class="{style}" {shape}/>',
            _draw_text("aside", x + 34, MARGIN + 65, text),
        ]
        x += LEGEND_STEP
    return parts


def _draw_document(found: Outline, parts: list[str], width: int, height: int) -> str:
    width = max(width, 2 * MARGIN + LEGEND_STEP * len(LEGEND))
    counted = (("input", found.inputs), ("output", found.outputs), ("fragment", found.fragments))
    under = ", ".join(f"{len(each)} {word}{'s' * (len(each) != 1)}" for word, each in counted)
    if found.stores:
        under += ", holds " + ", ".join(found.stores)
    return "\n".join(
        [
            f'<svg xmlns="{NAMESPACE}" viewBox="0 0 {width} {height}" width="{width}" role="img">',
            f"<title>{escape(found.app)}</title>",
            f"<style>{STYLE}</style>",
            ARROW,
            _draw_text("title", MARGIN, MARGIN + 22, found.app),
            _draw_text("under", MARGIN, MARGIN + 46, _truncate(under, LABEL_MAX)),
            *_draw_legend(width),
            *parts,
            "</svg>",
        ]
    )
