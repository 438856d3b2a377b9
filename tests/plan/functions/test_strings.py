import pytest

from edgewise.errors import BadEvent
from edgewise.event.types import AttrType
from edgewise.plan.functions import strings

STRING, INT, FLOAT = AttrType.STRING, AttrType.INT, AttrType.FLOAT
FACE = "\U0001f600"  # two UTF-16 units


@pytest.mark.parametrize(
    ("found", "value"),
    [
        (strings.char_at("abc", 1), "b"),
        (strings.char_at(FACE, 0), "\ud83d"),
        (strings.char_frequency("banana", "a"), 3),
        (strings.coalesce(None, "x"), "x"),
        (strings.concat((STRING, STRING, INT, AttrType.BOOL), "a", None, 1, True), "a1true"),
        (strings.concat((FLOAT, AttrType.DOUBLE), 0.10000000149011612, 1e-5), "0.11.0E-5"),
        (strings.contains("abc", "bc"), True),
        (strings.contains(None, "bc"), False),
        (strings.equals_ignore_case("aB", "Ab"), True),
        (strings.equals_ignore_case("\u00df", "SS"), False),
        (strings.equals_ignore_case("a", None), False),
        (strings.fill_template((STRING, STRING, INT), "{{1}} is {{2}}", "a", 2), "a is 2"),
        (strings.fill_template((STRING, STRING), "{{1}} x", None), "1 x"),
        (strings.fill_template((STRING, AttrType.OBJECT), "{{k}}!", {"k": 5}), "5!"),
        (strings.to_hex("MySQL"), "4d7953514c"),
        (strings.to_hex("\u20ac\t"), "20ac09"),
        (strings.from_hex("4d7953514c"), "MySQL"),
        (strings.length("a" + FACE), 3),
        (strings.locate("c", "abcabc", 3), 5),
        (strings.locate("z", "abc"), -1),
        (strings.lower("AB"), "ab"),
        (strings.upper("ab"), "AB"),
        (strings.regexp("WSO2 abcd", "WSO(.*h)?.*"), True),
        (strings.repeat("ab", 2), "abab"),
        (strings.repeat("ab", -1), ""),
        (strings.replace_all("hello hi hello", "hello", "test"), "test hi test"),
        (strings.replace_first("aa", "a", "b"), "ba"),
        (strings.reverse("ab" + FACE), FACE + "ba"),
        (strings.split("a1b22c", "[0-9]+", 2), "c"),
        (strings.strcmp("a", "c"), -2),
        (strings.strcmp("abc", "a"), 2),
        (strings.substr((STRING, INT), "AbCDefghiJ KLMN", 4), "efghiJ KLMN"),
        (strings.substr((STRING, INT, INT), "AbCDefghiJ KLMN", 2, 4), "CDef"),
        (strings.substr((STRING, STRING), "WSO2D ef", "^WSO2(.*)"), "WSO2D ef"),
        (strings.substr((STRING, STRING, INT), "WSO2D ef", "^WSO2(.*)", 1), "D ef"),
        (strings.trim("\t a\u00a0"), "a\u00a0"),
    ],
)
def test_strings(found, value):
    assert found == value


@pytest.mark.parametrize(
    "call",
    [
        lambda: strings.char_at("abc", 9),
        lambda: strings.char_frequency("abc", "bc"),
        lambda: strings.contains("a", None),
        lambda: strings.equals_ignore_case(None, "a"),
        lambda: strings.fill_template((STRING, INT), "{{7}}", 1),
        lambda: strings.fill_template((STRING, INT), None, 1),
        lambda: strings.from_hex("abc"),
        lambda: strings.from_hex("zz"),
        lambda: strings.locate("a", "abc", 9),
        lambda: strings.repeat("ab", strings.TEXT_UNITS_MAX),
        lambda: strings.split("a,b", ",", 5),
        lambda: strings.substr((STRING, INT), "abc", 5),
        lambda: strings.substr((STRING, STRING, INT), "abc", "b", 3),
    ],
)
def test_what_the_original_throws_on_drops_the_event(call):
    with pytest.raises(BadEvent):
        call()
