from hypothesis import given
from hypothesis import strategies as st

from edgewise.kernel.codegen.name_allocator import USER_NAME, Local, LocalNames, Stem, Stems

names = st.lists(st.text(max_size=8), unique=True)


@given(names, st.sampled_from(Local))
def test_different_values_have_different_locals(wanted, prefix):
    allocator = LocalNames(prefix)
    found = [allocator.allocate(name, name, f"slot_{name}") for name in wanted]
    assert len(set(found)) == len(wanted)
    assert all(name.isidentifier() and USER_NAME.match(name) for name in found)
    assert found == [allocator.allocate(name, name) for name in wanted]


@given(names)
def test_a_stem_with_any_tail_is_no_other_stem(wanted):
    stems = Stems()
    found = [stems.allocate(Stem.STREAM, name, name) for name in wanted]
    for stem in found:
        assert sum(f"{stem}_in".startswith(other) for other in found) == 1
        assert stem.isidentifier()
        assert USER_NAME.match(stem)


def test_an_alike_name_is_numbered_for_the_reader():
    allocator = LocalNames(Local.ROW)
    assert allocator.allocate(1, "a b") == "a_a_b"
    assert allocator.allocate(2, "a-b") == "a_a_b_2"
    assert allocator.allocate(3, "a_b", "S_a_b") == "a_S_a_b"


def test_a_text_without_names_is_the_same_in_any_source():
    one, other = Stems(), Stems()
    other.allocate(Stem.QUERY, 0, "another")
    texts = []
    for stems in (one, other):
        name = stems.allocate(Stem.QUERY, 7, "alerts")
        texts.append(stems.without_names(f"{name}_window.fresh() + [{name}, t1_, x9_y]"))
    assert texts == ["q_window.fresh() + [q, t1_, x9_y]"] * 2
