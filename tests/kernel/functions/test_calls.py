import pytest

from edgewise.kernel.functions import calls


@pytest.mark.parametrize(
    ("value", "kind", "result"),
    [
        ("12", "int", 12), ("x", "int", None), (None, "int", None), (3.9, "long", 3),
        (True, "int", 1), ("1.5", "double", 1.5), ("z", "float", None),
        (0.1, "float", 0.10000000149011612),
        ("TRUE", "bool", True), (1, "bool", True), (2, "bool", False),
        (True, "string", "true"), (2.0, "string", "2.0"),
    ],
)  # fmt: skip
def test_convert(value, kind, result):
    assert calls.convert(value, kind) == result


def test_the_best_of_several_skips_null():
    assert calls.maximum(1, None, 3) == 3
    assert calls.minimum(None, None) is None
    assert calls.coalesce(None, None, 2) == 2


def test_sets():
    assert calls.size_of_set(calls.create_set("a")) == 1
    assert calls.size_of_set(None) is None
