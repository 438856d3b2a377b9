"""Which sequences run in straight lines; that they give the same rows says test_sequence_code."""

import pytest

from edgewise.kernel.codegen.fragment_builder import FragmentBuilder
from edgewise.kernel.codegen.sequence_steps import sequence_of
from edgewise.lang import compile_app
from edgewise.plan.fragments import Fragment

TEXT = """
define stream A (k string, v int);
define stream B (k string, v int);
from {} select e1.v as v insert into O;
"""


def steps_of(sequence):
    app = compile_app(TEXT.format(sequence)).app
    builder = FragmentBuilder(app, Fragment("f", tuple(q.name for q in app.queries)), frozenset())
    found = sequence_of(builder, app.queries[0])
    return found and (
        found.every,
        [(s.leaf.stream, s.counted, s.least, s.most) for s in found.steps],
        found.within,
    )


def test_steps_are_single_events_or_counts_of_them():
    single, some = (False, 1, 1), (True, 1, None)
    assert steps_of("every e1=A, e2=B within 2 sec") == (
        True,
        [("A", *single), ("B", *single)],
        2000,
    )
    assert steps_of("e1=A+, e2=B") == (False, [("A", *some), ("B", *single)], None)


@pytest.mark.parametrize(
    "sequence",
    [
        "every e1=A -> e2=B",
        "every e1=A+, e2=A*, e3=B",
        "every e1=A, e2=B<2:3>, e3=A",
        "every e1=A, e2=B+",
        "every e1=A*, e2=B",
        "every e1=A, e2=A and e3=B",
        "every e1=A, not B for 1 sec",
    ],
)
def test_all_else_is_for_the_general_machine(sequence):
    assert steps_of(sequence) is None
