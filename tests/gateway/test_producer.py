import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgewise.gateway.producer import (
    KEY_CHARS_MAX,
    SEQUENCE_MAX,
    IdempotencyKey,
    parse_idempotency_key,
)


@pytest.mark.parametrize(
    ("key", "producer"),
    [
        ("", IdempotencyKey()),
        ("sensor-7/42", IdempotencyKey("sensor-7", 42)),
        ("a/b/0", IdempotencyKey("a/b", 0)),
        ("1b9d6bcd-bbfd", IdempotencyKey("key:1b9d6bcd-bbfd", 0)),
        ("a/b", IdempotencyKey("key:a/b", 0)),
    ],
)
def test_a_key_names_a_producer_and_its_sequence(key, producer):
    assert parse_idempotency_key(key) == producer


@pytest.mark.parametrize(
    "key", ["/5", "a" * (KEY_CHARS_MAX + 1), "ä/1", "a\n/1", " a/1", f"a/{SEQUENCE_MAX + 1}"]
)
def test_what_cannot_be_a_key_is_refused(key):
    with pytest.raises(ValueError, match=r"\w"):
        parse_idempotency_key(key)


@given(st.text())
def test_any_text_is_a_producer_or_a_value_error(key):
    try:
        name, sequence = parse_idempotency_key(key)
    except ValueError:
        return
    assert bool(name) == bool(key)
    assert -1 <= sequence <= SEQUENCE_MAX
