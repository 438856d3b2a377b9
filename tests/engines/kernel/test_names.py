from edgewise.engines.kernel.names import Names


def test_equal_names_of_two_slots_get_two_locals():
    names = Names([("a", "k", None), ("b", "k", None), ("b", "v", None)])
    assert names.unpack([("a", "k", None), ("b", "k", None)]) == "k, b_k = row[0], row[1]"
    assert names.unpack([("b", "v", None)]) == "v = row[2]"
