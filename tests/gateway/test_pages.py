"""Each example of a source or sink compiles, and the connector it names accepts its options."""

import re
from pathlib import Path

import pytest

from edgewise.gateway.connectors import SINKS, SOURCES, parse_sink, parse_source
from edgewise.lang import compile_app

DOCS = Path(__file__).parents[2] / "docs"
CONNECT = DOCS / "how-to" / "connect"
PAGES = [*sorted(CONNECT.glob("*.md")), DOCS / "reference" / "payloads.md"]


def examples():
    for page in PAGES:
        for number, text in enumerate(
            re.findall(r"```sql\n(.*?)```", page.read_text(), re.DOTALL)
        ):
            yield pytest.param(text, id=f"{page.stem}-{number}")


@pytest.mark.parametrize("text", list(examples()))
def test_the_example_of_a_page_is_an_app_with_ends_that_can_be_opened(text):
    query = "from Aux select x insert into AuxOut;"
    app = compile_app(f"define stream Aux (x int);\n{text}\n{query}").app
    for stream in app.streams:
        sources = [parse_source(stream.name, a, stream.schema) for a in stream.annotated("source")]
        sinks = [parse_sink(stream.name, a, stream.schema) for a in stream.annotated("sink")]
        assert sources or sinks or stream.name in {"Aux", "AuxOut", "app_log"}


def test_every_type_has_its_page():
    pages = {page.stem for page in PAGES}
    kinds = {*SOURCES, *SINKS, "http"}
    assert {kind.removesuffix("-response") for kind in kinds} <= pages
