import tomllib
from pathlib import Path

import pytest

from edgewise.errors import (
    EXTRAS,
    LINE_MAX,
    AppError,
    BadEvent,
    Problem,
    SetupError,
    Span,
    name_missing_extra,
    require_package,
)


def test_every_problem_is_shown_with_its_line_and_a_caret():
    text = "define stream S (a int);\nfrom T select a insert into O;"
    error = AppError(
        (Problem(Span(2, 6, 1), "no stream 'T'", hint="did you mean 'S'?"),), text, "app.siddhi"
    )
    assert str(error).splitlines() == [
        "app.siddhi:2:6: error: no stream 'T'",
        "    from T select a insert into O;",
        "         ^",
        "    did you mean 'S'?",
    ]


def test_a_place_outside_the_text_is_still_a_message():
    assert str(AppError((Problem(Span(9, 1), "gone"),), "x")) == "<app>:9:1: error: gone"


def test_a_bad_event_names_its_place_and_field():
    assert str(BadEvent("must be an int", index=3, field="v")) == (
        "event 3, field 'v': must be an int"
    )


def test_of_a_very_long_line_the_part_around_the_place_is_shown():
    text = "a" * 500 + "here" + "b" * 500
    shown, caret = str(AppError((Problem(Span(1, 501, 4), "no"),), text)).splitlines()[1:]
    assert len(shown) <= 4 + LINE_MAX + 6
    start = caret.index("^")
    assert shown[start : start + len(caret.strip())] == "here"
    assert shown.strip().startswith("...a")
    assert shown.endswith("b...")


@pytest.mark.parametrize("column", [1, 40, 121, 600, 999, 1000])
def test_the_caret_stands_under_its_character_wherever_it_is(column):
    text = "".join(chr(ord("a") + n % 26) for n in range(1000))
    shown, caret = str(AppError((Problem(Span(1, column), "no"),), text)).splitlines()[1:]
    assert shown[caret.index("^")] == text[column - 1]


def test_a_missing_package_of_an_extra_is_named_with_what_installs_it():
    wanted = r"'zmq' is not installed: pip install 'edgewise\[zeromq\]'"
    with pytest.raises(SetupError, match=wanted), name_missing_extra():
        raise ModuleNotFoundError("No module named 'zmq.asyncio'", name="zmq.asyncio")
    with pytest.raises(ModuleNotFoundError, match="mine"), name_missing_extra():
        raise ModuleNotFoundError("No module named 'mine'", name="mine")


def test_a_package_that_is_required_is_looked_for_and_not_loaded(monkeypatch):
    require_package("pyspark")
    monkeypatch.setitem(EXTRAS, "no_such_package", "nothing")
    with pytest.raises(SetupError, match=r"edgewise\[nothing\]', or say --engine embedded"):
        require_package("no_such_package", "say --engine embedded")


def test_every_extra_brings_its_package():
    """The table of packages and `pyproject.toml` name the same extras."""
    text = (Path(__file__).parent.parent / "pyproject.toml").read_text()
    extras = tomllib.loads(text)["project"]["optional-dependencies"]
    assert set(EXTRAS.values()) == set(extras) - {"all"}
    [everything] = extras["all"]
    named = everything.removeprefix("edgewise[").removesuffix("]").split(",")
    assert set(named) == set(extras) - {"all", "amqp1"}  # amqp1 has to be compiled
