import pytest

from edgewise.lsp.signatures import write_function, write_stream_function, write_window
from edgewise.plan.functions import FUNCTIONS
from edgewise.plan.streamcalls import STREAM_FUNCTIONS
from edgewise.plan.windows import WINDOWS


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("sum", "sum(number) -> by arguments (aggregate)"),
        ("str:length", "str:length(string) -> int"),
        ("coalesce", "coalesce(any, ...) -> by arguments"),
    ],
)
def test_a_function_is_shown_with_its_types(name, text):
    assert write_function(FUNCTIONS[name]).split("\n")[0] == text


def test_everything_that_can_be_called_has_a_signature():
    assert all(write_function(f).startswith(f.name) for f in FUNCTIONS.values())
    assert all(write_window(w).startswith(f"#window.{w.name}(") for w in WINDOWS.values())
    assert all(write_stream_function(f) for f in STREAM_FUNCTIONS.values())


def test_what_a_stream_function_adds_is_told():
    assert write_stream_function(STREAM_FUNCTIONS["pol2cart"]).endswith(
        "adds x double, y double, z double"
    )
