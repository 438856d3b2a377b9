import math

import pytest

from edgewise.errors import BadEvent
from edgewise.event.types import AttrType
from edgewise.plan.functions import java_text

FACE = "\U0001f600"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"), (True, "true"), (1, "1"), (1.0, "1.0"), (1e-5, "1.0E-5"), (1e10, "1.0E10"),
        (0.001, "0.001"), (math.inf, "Infinity"), (math.nan, "NaN"), ([1, "a"], "[1, a]"),
        ({"a": 1.5}, "{a=1.5}"), (123456789.125, "1.23456789125E8"),
    ],
)  # fmt: skip
def test_values_are_written_as_java_writes_them(value, text):
    assert java_text.show(value) == text


def test_the_type_tells_a_float_from_a_double():
    assert java_text.show(0.10000000149011612, AttrType.FLOAT) == "0.1"
    assert java_text.show(0.10000000149011612, AttrType.DOUBLE) == "0.10000000149011612"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2.5", 2.5),
        (" 1 ", 1.0),
        ("8d", 8.0),
        ("0x1p3", 8.0),
        ("-Infinity", -math.inf),
        (".5f", 0.5),
    ],
)
def test_numbers_are_read_as_java_reads_them(text, value):
    assert java_text.parse_real(text) == value


@pytest.mark.parametrize("text", ["", "x", "1,5", "1_0", "inf", "0x10"])
def test_text_that_is_no_number_drops_the_event(text):
    with pytest.raises(BadEvent):
        java_text.parse_real(text)


def test_a_float_that_is_too_large_is_infinite():
    assert java_text.parse_float("1e300") == math.inf
    assert java_text.parse_float("0.1") == 0.10000000149011612


def test_whole_numbers_keep_to_their_bits_and_base():
    assert java_text.parse_whole("-2147483648", 32) == -(1 << 31)
    assert java_text.parse_whole("7F", 32, 16) == 127
    assert java_text.write_whole(-255, 16) == "-ff"
    assert java_text.write_whole(255, 99) == "255"
    for text in ("2147483648", "+", "1 "):
        with pytest.raises(BadEvent):
            java_text.parse_whole(text, 32)


def test_units_are_those_of_utf16():
    assert len(java_text.to_units("a" + FACE)) == 3
    assert java_text.from_units(java_text.to_units(FACE)) == FACE
    assert java_text.string_hash("hello") == 99162322
