from edgewise.kernel.codegen.row_layout import TIME, RowLayout


def test_equal_names_of_two_slots_get_two_locals():
    names = RowLayout([("a", "k", None), ("b", "k", None), ("b", "v", None)])
    assert names.unpack([("a", "k", None), ("b", "k", None)]) == "a_k, a_b_k = row[0], row[1]"
    assert names.unpack([("b", "v", None)]) == "a_v = row[2]"


def test_the_time_of_a_slot_is_no_attribute_that_is_called_so():
    names = RowLayout([("a", "time", None), ("a", TIME, None), ("a", "@time", None)])
    assert len(set(names.locals.values())) == 3
