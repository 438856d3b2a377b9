"""Each example of docs/sources compiles, and its ends are accepted by the doors they name."""

import re
from pathlib import Path

import pytest

from edgewise.gateway.doors import SINKS, SOURCES
from edgewise.lang import compile_app
from edgewise.node.ends import Ends

PAGES = sorted((Path(__file__).parents[2] / "docs" / "sources").glob("*.md"))


def examples():
    for page in PAGES:
        for number, text in enumerate(
            re.findall(r"```sql\n(.*?)```", page.read_text(), re.DOTALL)
        ):
            yield pytest.param(text, id=f"{page.stem}-{number}")


@pytest.mark.parametrize("text", list(examples()))
def test_the_example_of_a_page_is_an_app_with_ends_that_can_be_opened(text):
    app = compile_app(
        text + "\nfrom Aux select 1 as one insert into AuxOut;\ndefine stream Aux (x int);"
    ).app
    for stream in app.streams:
        ends = [*stream.annotated("source"), *stream.annotated("sink")]
        assert ends or stream.name in {"Aux", "AuxOut", "app_log"}
    Ends.of(app)


def test_every_door_has_its_page():
    assert {*SOURCES, *SINKS, "http"} <= {page.stem for page in PAGES}
