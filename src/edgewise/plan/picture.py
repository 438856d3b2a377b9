"""A plan as a picture: streams and queries from left to right, fragments as the ground they share.

Streams and stores are pills, queries are cards with what they do. The layout is layered: a node
stands right of everything it reads.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from xml.sax.saxutils import escape

from edgewise.plan.explain import FragmentOutline, Outline, QueryOutline, outline, runs
from edgewise.plan.nodes import App

CARD_WIDTH, PILL_WIDTH, PILL_HEIGHT = 320, 170, 34
GAP_X, GAP_Y, MARGIN, LINE = 70, 26, 40, 18
PADDING, HEAD = 14, 66
TEXT_MAX = 46  # characters of one line of a card
LINES_MAX = 4  # lines of one clause

NAMESPACE = "http://www.w3.org/2000/svg"
ARROW = """<defs><marker id="arrow" viewBox="0 0 8 8" refX="6" refY="4" markerWidth="7"
  markerHeight="7" orient="auto"><path d="M0,0 L8,4 L0,8 z"/></marker></defs>"""
STYLE = """
  svg { background: #fbfaf7; font-family: ui-sans-serif, system-ui, sans-serif; font-size: 13px; }
  .title { font-size: 24px; font-weight: 650; fill: #1d2430; }
  .under { fill: #6b7280; }
  .ground { fill: #eef2f6; stroke: #d7dee7; }
  .ground.keyed { fill: #eaf5ef; stroke: #c5e3d2; }
  .ground.native { fill: #f1effa; stroke: #d8d2ef; }
  .label { font-size: 12px; fill: #4b5563; }
  .card { fill: #ffffff; stroke: #cbd3dd; }
  .name { font-weight: 650; fill: #1d2430; }
  .clause { font-family: ui-monospace, SFMono-Regular, Menlo, monospace; font-size: 11.5px;
    fill: #374151; }
  .grows { fill: #b45309; }
  .pill { fill: #1f3a5f; }
  .pill.out { fill: #0f766e; }
  .pilltext { fill: #ffffff; text-anchor: middle; }
  .edge { fill: none; stroke: #94a3b8; stroke-width: 1.6; }
  marker path { fill: #94a3b8; }
"""


@dataclass(slots=True)
class Box:
    """A pill or a card; `rank` is its column."""

    key: str
    rank: int = 0
    query: QueryOutline | None = None
    lines: list[tuple[str, str]] = field(default_factory=list)
    kind: str = ""
    x: int = 0
    y: int = 0

    @property
    def width(self) -> int:
        return CARD_WIDTH if self.query else PILL_WIDTH

    @property
    def height(self) -> int:
        return 2 * PADDING + LINE * len(self.lines) if self.query else PILL_HEIGHT


def explain_svg(app: App) -> str:
    """The picture of a plan, as one SVG document."""
    found = outline(app)
    parts: list[str] = []
    top = MARGIN + HEAD
    width = 0
    for fragment in found.fragments:
        boxes = _boxes(fragment, found)
        right, bottom = _place(boxes, top + 30)
        parts += _draw(fragment, boxes, top, right, bottom)
        top = bottom + PADDING + GAP_Y
        width = max(width, right + PADDING)
    return _document(found, parts, max(width + MARGIN, 640), top + MARGIN - GAP_Y)


def _boxes(fragment: FragmentOutline, found: Outline) -> dict[str, Box]:
    boxes: dict[str, Box] = {}
    for query in fragment.queries:
        for stream in query.reads:
            boxes.setdefault(f"s:{stream}", Box(f"s:{stream}"))
        boxes[f"q:{query.name}"] = Box(f"q:{query.name}", query=query, lines=_lines(query))
        if query.writes:
            target = boxes.setdefault(f"s:{query.writes}", Box(f"s:{query.writes}"))
            target.kind = "out" if query.writes in found.outputs else ""
    _rank(boxes, _edges(fragment))
    return boxes


def _edges(fragment: FragmentOutline) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for query in fragment.queries:
        found += [(f"s:{stream}", f"q:{query.name}") for stream in query.reads]
        if query.writes:
            found.append((f"q:{query.name}", f"s:{query.writes}"))
    return found


def _rank(boxes: dict[str, Box], edges: list[tuple[str, str]]) -> None:
    """Longest way from an input; a ring stops growing after as many rounds as there are boxes."""
    for _ in range(len(boxes)):
        moved = False
        for source, target in edges:
            if boxes[target].rank <= boxes[source].rank < len(boxes):
                boxes[target].rank = boxes[source].rank + 1
                moved = True
        if not moved:
            return


def _place(boxes: dict[str, Box], top: int) -> tuple[int, int]:
    """Columns by rank, each centred; gives the right and bottom end."""
    columns: dict[int, list[Box]] = {}
    for box in boxes.values():
        columns.setdefault(box.rank, []).append(box)
    heights = {r: sum(b.height + GAP_Y for b in c) - GAP_Y for r, c in columns.items()}
    tallest = max(heights.values(), default=0)
    x = MARGIN + PADDING
    for rank in sorted(columns):
        y = top + (tallest - heights[rank]) // 2
        for box in columns[rank]:
            box.x, box.y = x, y
            y += box.height + GAP_Y
        x += max(b.width for b in columns[rank]) + GAP_X
    return x - GAP_X, top + tallest


def _lines(query: QueryOutline) -> list[tuple[str, str]]:
    found = [("name", query.name)]
    for text in (query.source, f"select {query.select}"):
        found += [("clause", line) for line in _wrap(text)]
    state = f"state: {query.state}" if query.state != "none" else ""
    found += [("clause under", line) for line in _wrap(state)]
    if query.grows:
        found += [("clause grows", line) for line in _wrap(f"grows: {query.grows}")]
    return found


def _wrap(text: str) -> list[str]:
    """Lines of at most TEXT_MAX characters, broken at spaces, cut after LINES_MAX."""
    lines = [""]
    for word in text.split():
        if lines[-1] and len(lines[-1]) + len(word) + 1 > TEXT_MAX:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    lines = [line if len(line) <= TEXT_MAX else line[: TEXT_MAX - 1] + "…" for line in lines]
    if len(lines) > LINES_MAX:
        lines = [*lines[: LINES_MAX - 1], lines[LINES_MAX - 1][: TEXT_MAX - 2] + " …"]
    return [line for line in lines if line]


def _draw(
    fragment: FragmentOutline, boxes: dict[str, Box], top: int, right: int, bottom: int
) -> list[str]:
    kind = "native" if fragment.runs == "native" else "keyed" if fragment.keys else "single"
    width, height = right - MARGIN + PADDING, bottom - top + PADDING
    label = f"{fragment.name}: {runs(fragment)}"
    parts = [
        f'<rect class="ground {kind}" {_area(MARGIN, top, width, height, 14)}/>',
        f'<text class="label" x="{MARGIN + PADDING}" y="{top + 20}">{escape(label)}</text>',
    ]
    for source, target in _edges(fragment):
        parts.append(_edge(boxes[source], boxes[target]))
    for box in boxes.values():
        parts += _card(box) if box.query else _pill(box)
    return parts


def _area(x: int, y: int, width: int, height: int, radius: int) -> str:
    return f'x="{x}" y="{y}" width="{width}" height="{height}" rx="{radius}"'


def _edge(source: Box, target: Box) -> str:
    x1, y1 = source.x + source.width, source.y + source.height // 2
    x2, y2 = target.x - 4, target.y + target.height // 2
    bend = max(30, abs(x2 - x1) // 2)
    path = f"M{x1},{y1} C{x1 + bend},{y1} {x2 - bend},{y2} {x2},{y2}"
    return f'<path class="edge" d="{path}" marker-end="url(#arrow)"/>'


def _pill(box: Box) -> list[str]:
    name = box.key[2:]
    shown = name if len(name) <= 22 else name[:21] + "…"
    area = _area(box.x, box.y, box.width, box.height, box.height // 2)
    middle = f'x="{box.x + box.width // 2}" y="{box.y + box.height // 2 + 4}"'
    return [
        f'<rect class="pill {box.kind}" {area}><title>{escape(name)}</title></rect>',
        f'<text class="pilltext" {middle}>{escape(shown)}</text>',
    ]


def _card(box: Box) -> list[str]:
    parts = [f'<rect class="card" {_area(box.x, box.y, box.width, box.height, 10)}/>']
    for place, (style, text) in enumerate(box.lines):
        y = box.y + PADDING + LINE * place + 12
        parts.append(f'<text class="{style}" x="{box.x + PADDING}" y="{y}">{escape(text)}</text>')
    return parts


def _document(found: Outline, parts: list[str], width: int, height: int) -> str:
    under = f"{len(found.inputs)} inputs, {len(found.outputs)} outputs"
    if found.stores:
        under += ", holds " + ", ".join(found.stores)
    return "\n".join(
        [
            f'<svg xmlns="{NAMESPACE}" viewBox="0 0 {width} {height}" width="{width}" role="img">',
            f"<title>{escape(found.app)}</title>",
            f"<style>{STYLE}</style>",
            ARROW,
            f'<text class="title" x="{MARGIN}" y="{MARGIN + 16}">{escape(found.app)}</text>',
            f'<text class="under" x="{MARGIN}" y="{MARGIN + 38}">{escape(under)}</text>',
            *parts,
            "</svg>",
        ]
    )
