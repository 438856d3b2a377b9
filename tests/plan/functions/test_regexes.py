import pytest

from edgewise.errors import BadEvent
from edgewise.plan.functions import regexes


@pytest.mark.parametrize(
    ("found", "value"),
    [
        (regexes.find("a+", "baa"), True),
        (regexes.find("a", "abb", 1), False),
        (regexes.find("a", "\U0001f600a", 2), True),
        (regexes.find("a", None), False),
        (regexes.find("a", "a", None), False),
        (regexes.group("(a)(b)?", "xa", 2), None),
        (regexes.group("(a)(b)", "ab", 2), "b"),
        (regexes.group("(a)", "ab", 7), None),
        (regexes.looking_at("a", "ab"), True),
        (regexes.looking_at("a", None), False),
        (regexes.matches("a", "ab"), False),
    ],
)
def test_regexes(found, value):
    assert found == value


@pytest.mark.parametrize(
    "call",
    [
        lambda: regexes.find(None, "a"),
        lambda: regexes.find("a", "a", 9),
        lambda: regexes.group("a", "a", -1),
        lambda: regexes.matches("(", "a"),
    ],
)
def test_what_the_original_throws_on_drops_the_event(call):
    with pytest.raises(BadEvent):
        call()
