import pytest

from edgewise.engines.kernel.writer import Writer, local


@pytest.mark.parametrize(
    ("name", "python"),
    [
        ("price", "price"),
        ("class", "class_"),
        ("row", "row_"),
        ("1a", "_1a"),
        ("a b", "a_b"),
        ("t1", "t1_"),
    ],
)
def test_an_attribute_becomes_a_local_that_hides_nothing(name, python):
    assert local(name) == python


def test_blocks_indent_and_an_empty_one_passes():
    writer = Writer()
    with writer.block("if x"):
        with writer.block("for y in z"):
            pass
        writer.line("done()")
    assert writer.text() == "if x:\n    for y in z:\n        pass\n    done()\n"
