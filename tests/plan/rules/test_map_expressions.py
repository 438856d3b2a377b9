import pytest

from edgewise.lang import compile_app
from edgewise.plan.exprs import Const, walk
from edgewise.plan.rules.map_expressions import map_exprs

DEFINE = "define stream A (k string, v int); define table T (k string, v int);"


@pytest.mark.parametrize(
    "text",
    [
        "from A[v > 1]#window.length(2)[v > 1] select v + 1 as w having w > 1 insert into O;",
        """from A[v > 1]#window.length(2) as a join T on T.v + 1 > a.v select a.v + 1 as x
        insert into O;""",
        """from every a=A[v > 1] -> b=A[v > 1]<2> -> (not A[v > 1] for 1 sec and c=A[v > 1])
        select a.v + 1 as x insert into O;""",
        "from A select k, v update T set T.v = v + 1 on T.v + 1 > v;",
        "from A delete T on T.v + 1 > v;",
        "from A[v > 1] return;",
    ],
)
def test_every_expression_is_reached(text):
    seen = []

    def note(expr):
        seen.extend(n for n in walk(expr) if isinstance(n, Const))
        return expr

    app = compile_app(DEFINE + text).app
    assert map_exprs(app, note) == app
    assert len([c for c in seen if c.value == 1]) == text.count("> 1") + text.count("+ 1")
