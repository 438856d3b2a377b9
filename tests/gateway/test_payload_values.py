import pytest

from edgewise.event.schema import Schema
from edgewise.gateway.payload_values import (
    check_options,
    decode_text,
    parse_path,
    parse_words,
    pick,
)
from edgewise.gateway.refusal import Refusal
from edgewise.gateway.spec import BadSpec, MapSpec


def test_a_path_finds_values_in_objects_and_lists_and_null_elsewhere():
    event = {"a": [{"b": 1}]}
    assert pick(event, parse_path("$.a[0].b")) == 1
    assert pick(event, parse_path("a[1].b")) is None
    assert pick(event, parse_path("a.b")) is None
    assert pick(event, parse_path("")) is event


def test_words_become_values_and_an_empty_word_null():
    schema = Schema.of("S", i="int", d="double", b="bool", o="object")
    assert parse_words(["1", "2.5", "TRUE", "[1]"], schema) == (None, [1, 2.5, True, "[1]"], [])
    assert parse_words(["", "", "", ""], schema) == (None, [None] * 4, [])
    assert [name for name, _ in parse_words(["1_0", "x", "yes", "["], schema)[2]] == list("idbo")


def test_bytes_that_are_no_text_are_refused():
    assert isinstance(decode_text(b"\xff"), Refusal)
    assert decode_text("é".encode()) == "é"


def test_an_unknown_option_of_a_mapping_is_refused():
    with pytest.raises(BadSpec, match="no option 'b'; known: a"):
        check_options(MapSpec("csv", {"a": "", "b": ""}), {"a"})
    with pytest.raises(BadSpec, match="did you mean 'header'"):
        check_options(MapSpec("csv", {"heder": ""}), {"header"})
