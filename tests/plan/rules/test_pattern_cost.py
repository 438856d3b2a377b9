"""What an event costs as matches pile up, and what to write where it grows."""

import pytest
from tests.support.compiled_plans import warned
from tests.support.kernel_runs import STREAMS

from edgewise.lang import compile_app
from edgewise.plan.explain import explain_text
from edgewise.plan.rules.pattern_cost import derive_pattern_costs


def app_of(chain):
    text = f"{STREAMS} from {chain} select 1 as one insert into O;"
    return compile_app(text).app


def cost(chain):
    return derive_pattern_costs(app_of(chain))["query1"]


@pytest.mark.parametrize(
    ("chain", "words"),
    [
        ("every e1=A -> e2=B[v < 5]", "constant"),
        ("every e1=A -> e2=B[k == e1.k]", "constant"),
        ("every e1=A -> e2=B[v > e1.v]", "logarithmic"),
        ("every e1=A -> e2=B[k == e1.k and v > e1.v] -> e3=A[v > e2.v]", "logarithmic"),
        ("every e1=A -> e2=B[k == e1.k and v > e1.v]", "grows with open matches of one key"),
        ("every e1=A<3:5> -> e2=B", "constant"),
        ("every e1=A -> (e2=A and e3=B)", "constant"),
        ("every e1=A -> not B[k == e1.k] for 5 sec", "constant"),
        ("every e1=A, e2=B[v != e1.v]", "constant"),
        ("every e1=A -> e2=B[v != e1.v]", "grows with open matches: 'v != e1.v' is asked of each"),
        ("every e1=A -> e2=B<1:> -> e3=A", "grows with open matches: each takes every event of"),
        ("every e1=A -> (not B for 1 sec and e3=A)", "grows with open matches: 'not' beside"),
    ],
)
def test_the_cost_is_said(chain, words):
    found = cost(chain)
    assert found.text.startswith(words)
    assert bool(found.fix) == bool(found.why) == words.startswith("grows")


def test_explain_prints_it():
    text = explain_text(app_of("every e1=A -> e2=B[v > e1.v] within 1 sec"))
    assert "├─ cost   logarithmic in open matches: found by order" in text
    assert "cost" not in explain_text(compile_app(f"{STREAMS} from A insert into O;").app)


def test_check_warns_where_it_grows_and_nothing_bounds_it():
    chain = "every e1=A -> e2=B[k == e1.k and v != e1.v]"
    text = "from {} select e1.v as x insert into X;"
    assert any("costs more with every open match" in w for w in warned(text.format(chain)))
    assert warned(text.format(f"{chain} within 1 min")) == []
