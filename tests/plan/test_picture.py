from xml.etree import ElementTree as ET

from hypothesis import given
from hypothesis import strategies as st

from edgewise.lang import compile_app
from edgewise.plan.picture import LINES_MAX, PILL_WIDTH, TEXT_MAX, _wrap_text, explain_svg

APP = """@app:name('a < b') define stream A (k string, v int);
from A[v > 5 and k == 'x'] select k insert into B;
from B#window.length(2) select k, count() as n group by k insert into C;
from every a=A -> b=A[k == a.k] select a.v as x insert into D;
"""


def drawn(text):
    return ET.fromstring(explain_svg(compile_app(text).app))


def boxes(svg, kind):
    found = [r for r in svg.iter() if r.tag.endswith("rect") and kind in r.get("class")]
    found = [r for r in found if int(r.get("width")) >= PILL_WIDTH]  # not those of the legend
    return [tuple(int(r.get(n)) for n in ("x", "y", "width", "height")) for r in found]


def test_every_query_and_stream_is_drawn_inside_the_picture():
    svg = drawn(APP)
    _, _, width, height = (int(n) for n in svg.get("viewBox").split())
    cards, pills = boxes(svg, "card"), boxes(svg, "pill")
    assert (len(cards), len(pills)) == (3, 5)  # the stream between two stages at both ends
    for x, y, w, h in cards + pills:
        assert 0 <= x < x + w <= width
        assert 0 <= y < y + h <= height


def test_no_two_boxes_overlap():
    svg = drawn(APP)
    found = boxes(svg, "card") + boxes(svg, "pill")
    for n, (x1, y1, w1, h1) in enumerate(found):
        for x2, y2, w2, h2 in found[n + 1 :]:
            assert x1 + w1 <= x2 or x2 + w2 <= x1 or y1 + h1 <= y2 or y2 + h2 <= y1


def test_a_ring_of_streams_ends():
    drawn("define stream A (v int); from A insert into B; from B insert into A;")


@given(st.text(max_size=400))
def test_lines_of_a_card_fit(text):
    lines = _wrap_text(text)
    assert len(lines) <= LINES_MAX
    assert all(len(line) <= TEXT_MAX for line in lines)


def test_a_card_says_what_is_kept_and_what_others_noted():
    svg = explain_svg(compile_app(APP).app, {"query2": ("precise",)})
    for text in ("keeps 2 events", "precise", "without end: 'every' starts a match", "line 2"):
        assert text in svg


def test_a_store_that_no_query_reads_is_drawn_with_its_input():
    text = "define stream A (v int);"
    text += "define aggregation G from A select sum(v) as t aggregate every sec ... year;"
    assert len(boxes(drawn(text), "pill")) == 2
