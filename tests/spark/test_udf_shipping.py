import sys
import textwrap

import pytest

from edgewise.event.event import Event
from edgewise.node.app import load as apps
from edgewise.node.commands.replay import replay
from edgewise.spark.udf_shipping import find_own_modules

MINE = """
from edgewise.plan.functions import NUMBER, TEXT, same, scalar
from edgewise.plan.procedures import Procedure

def helper(x):
    return 2 * x

def _twice(x):
    return helper(x)

twice = scalar("my:twice", NUMBER, returns=same, python=_twice)
sound = scalar("my:sound", TEXT, returns=same, spark="soundex")

class Nth(Procedure):
    name = "my:nth"
    appends = {"n": "int"}
    state = {"seen": 0}

    def process(self, event, state):
        state["seen"] += 1
        return {"n": state["seen"]}
"""
APP = """
define stream S (k string, v int);
define stream T (s string);
partition with (k of S)
begin
    from S#my:nth() select k, my:twice(v) as w, n insert into O;
end;
from T[my:sound(s) == 'R163'] select s, my:sound(s) as sound insert into P;
"""


@pytest.fixture
def app(tmp_path):
    file = tmp_path / "mine_on_spark.py"
    file.write_text(textwrap.dedent(MINE))
    text = tmp_path / "app.siddhi"
    text.write_text(APP)
    yield apps.load(text, [str(file)]).app
    sys.modules.pop("mine_on_spark", None)


def test_only_code_that_no_worker_can_import_travels_by_value(app):
    assert [module.__name__ for module in find_own_modules(app)] == ["mine_on_spark"]


def test_functions_beside_the_app_run_in_the_tasks(spark, app):
    events = [Event("S", n, ("ab"[n % 2], n)) for n in range(6)]
    events += [Event("T", 10, (name,)) for name in ("Robert", "Anna")]
    found = replay(app, events, "spark", small_batch_rows=0)
    rows = {(row.stream, row.data) for row in found}
    assert rows == {
        *{("O", ("ab"[n % 2], 2 * n, n // 2 + 1)) for n in range(6)},
        ("P", ("Robert", "R163")),
    }
