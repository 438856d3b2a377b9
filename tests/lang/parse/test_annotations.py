from tests.support.parsed_trees import parsed, problems

from edgewise.lang.syntax.query import Annotation


def test_keys_values_and_nesting():
    text = "@a(x.y-z='1', 'two', 'k'='3', @b(c='4'), @d) define stream S (v int)"
    assert parsed(text).definitions[0].annotations == (
        Annotation(
            "a",
            (("x.y-z", "1"), ("", "two"), ("k", "3")),
            (Annotation("b", (("c", "4"),)), Annotation("d")),
        ),
    )


def test_what_is_wrong():
    assert problems("@a('x' define stream S (v int)")[0] == "expected ')', found 'define'"
    assert problems("@Key'x' define stream S (v int)") == [
        "expected '(' after '@Key', found ''x''"
    ]
    assert problems("@Key() define stream S (v int)")[0].startswith("expected a key")
