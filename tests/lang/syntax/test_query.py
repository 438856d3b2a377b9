from edgewise.lang.syntax.query import Name


def test_a_full_name_carries_its_prefix():
    assert Name("S", "#").full == "#S"
