"""Each example of docs/sources compiles, and its ends are accepted by the doors they name."""

import re
from pathlib import Path

import pytest

from edgewise.gateway.doors import SINKS, SOURCES, sink_of, source_of
from edgewise.lang import compile_app

OWN = "own"  # its doors come with a package that is not installed here
PAGES = sorted((Path(__file__).parents[2] / "docs" / "sources").glob("*.md"))


def examples():
    for page in (page for page in PAGES if page.stem != OWN):
        for number, text in enumerate(
            re.findall(r"```sql\n(.*?)```", page.read_text(), re.DOTALL)
        ):
            yield pytest.param(text, id=f"{page.stem}-{number}")


@pytest.mark.parametrize("text", list(examples()))
def test_the_example_of_a_page_is_an_app_with_ends_that_can_be_opened(text):
    query = "from Aux select x insert into AuxOut;"
    app = compile_app(f"define stream Aux (x int);\n{text}\n{query}").app
    for stream in app.streams:
        sources = [source_of(stream.name, a, stream.schema) for a in stream.annotated("source")]
        sinks = [sink_of(stream.name, a, stream.schema) for a in stream.annotated("sink")]
        assert sources or sinks or stream.name in {"Aux", "AuxOut", "app_log"}


def test_every_door_has_its_page():
    assert {*SOURCES, *SINKS, "http"} <= {page.stem for page in PAGES}
