from hypothesis import given
from hypothesis import strategies as st

from edgewise.event.types import AttrType
from edgewise.plan.exprs import And, Arith, Compare, Const, Field, Or, build_balanced, walk


def test_walk_gives_parents_before_children_left_to_right():
    a, one = Field(AttrType.INT, "S", "a"), Const(AttrType.INT, 1)
    plus = Arith(AttrType.INT, "+", a, one)
    over = Compare(">", plus, one)
    assert walk(over) == (over, plus, a, one, one)


@given(st.integers(1, 300), st.sampled_from([And, Or]))
def test_a_chain_is_a_shallow_tree_in_the_same_order(count, join):
    terms = [Field(AttrType.BOOL, "S", str(n)) for n in range(count)]
    tree = build_balanced(join, list(terms))
    assert [n for n in walk(tree) if isinstance(n, Field)] == terms
    assert depth(tree) <= count.bit_length() + 1


def depth(tree):
    return 1 if isinstance(tree, Field) else 1 + max(depth(tree.left), depth(tree.right))
