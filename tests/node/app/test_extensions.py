import os
import textwrap

import pytest

from edgewise.errors import AppError, SetupError
from edgewise.node.app import extensions
from edgewise.node.app import load as apps

MINE = """
from edgewise.plan.functions import NUMBER, TEXT, same, scalar
from edgewise.plan.procedures import Procedure

twice = scalar("my:twice", NUMBER, returns=same, python=lambda x: 2 * x)
sound = scalar("my:sound", TEXT, returns=same, spark="soundex")

class Nth(Procedure):
    name = "my:nth"
    appends = {"n": "int"}
    state = {"seen": 0}

    def process(self, event, state):
        state["seen"] += 1
        return {"n": state["seen"]}
"""


SPREAD = """
import edgewise
from edgewise import eep
from edgewise.plan.declare import aggregate

@aggregate("my:spread", "number", returns="double", samples=(1, 2.5, -3))
class Spread(eep.Aggregate):
    invertible = False
    def init(self):
        return ()
    def accumulate(self, state, value):
        return self.merge(state, (value, value))
    def merge(self, earlier, later):
        if not earlier or not later:
            return earlier or later
        return (min(earlier[0], later[0]), max(earlier[1], later[1]))
    def emit(self, state):
        return float(state[1] - state[0]) if state else None
"""


@pytest.fixture
def mine(tmp_path):
    path = tmp_path / "mine_for_tests.py"
    path.write_text(textwrap.dedent(MINE))
    return path


def test_a_file_brings_all_that_it_defines(mine):
    found = extensions.find([str(mine)])
    assert "my:twice" in found.functions
    assert found.functions["my:sound"].spark == "soundex"
    assert [p.name for p in found.procedures] == ["my:nth"]


def test_merges_come_the_same_way(tmp_path):
    path = tmp_path / "merges_for_tests.py"
    path.write_text(
        "import operator\nfrom edgewise.edge.topics.merges import Merge\n"
        "bits = Merge('bits', operator.or_, idempotent=True, samples=(1, 2, 7))\n"
    )
    assert [m.name for m in extensions.find([str(path)]).merges] == ["bits"]
    app = tmp_path / "a.siddhi"
    app.write_text(
        "define stream S (k string, v int);\n"
        "@sink(type='topic', path='a/{k}', conflate='merge(bits(v))')\n"
        "define stream O (k string, v int);\nfrom S select k, v insert into O;\n"
    )
    assert [m.name for m in apps.load(app, [str(path)]).merges] == ["bits"]
    with pytest.raises(AppError, match="no merge 'bits'"):
        apps.load(app)


def test_an_aggregate_is_a_function_of_the_language_and_a_merge_of_the_edge(tmp_path):
    path = tmp_path / "spread_for_tests.py"
    path.write_text(SPREAD)
    found = extensions.find([str(path)])
    assert found.functions["my:spread"].aggregate
    [merge] = found.merges
    both = merge.merge(merge.lift(1), merge.lift(5))
    assert (merge.name, merge.show(both)) == ("spread", 4.0)
    app = tmp_path / "a.siddhi"
    app.write_text(
        "define stream S (k string, v int);\n"
        "@sink(type='topic', path='a/{k}', conflate='merge(spread(w))')\n"
        "define stream O (k string, w double);\n"
        "from S select k, my:spread(v) as w group by k insert into O;\n"
    )
    assert apps.load(app, [str(path)]).app.queries
    with pytest.raises(AppError, match="there is no function 'my:spread'"):
        apps.load(app)


def test_an_aggregate_that_breaks_a_law_is_refused_with_the_values_that_show_it(tmp_path):
    path = tmp_path / "broken_for_tests.py"
    path.write_text(SPREAD.replace("max(earlier[1], later[1])", "earlier[1] - later[1]"))
    with pytest.raises(SetupError, match=r"'my:spread' breaks a law of aggregates .*merged"):
        extensions.find([str(path)])


def test_a_name_brings_that_one(mine):
    found = extensions.find([f"{mine}:twice"])
    assert "my:twice" in found.functions
    assert "my:sound" not in found.functions
    assert found.procedures == ()


def test_a_module_is_looked_for_where_the_command_is_called(mine, monkeypatch):
    monkeypatch.chdir(mine.parent)
    monkeypatch.syspath_prepend(str(mine.parent))
    assert "my:twice" in extensions.find(["mine_for_tests"]).functions


def test_an_installed_package_brings_its_own(mine, monkeypatch):
    meta = mine.parent / "mine-1.0.dist-info"
    meta.mkdir()
    (meta / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n")
    (meta / "entry_points.txt").write_text("[edgewise.functions]\nmine = mine_for_tests:twice\n")
    monkeypatch.syspath_prepend(str(mine.parent))
    assert extensions.installed() == ("mine_for_tests:twice",)
    app = mine.parent / "app.siddhi"
    app.write_text("define stream S (v int); from S select my:twice(v) as w insert into O;")
    assert apps.load(app).app.queries


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("no_such_module_here", "cannot load 'no_such_module_here': ModuleNotFoundError"),
        ("none.py", "cannot load 'none.py': FileNotFoundError"),
        ("json:nothing", "'json' has no 'nothing'"),
        ("json", "no function, aggregate, procedure, merge or answer there"),
        ("edgewise.plan.functions:AGGREGATES", "'sum' is an aggregate of the language"),
    ],
)
def test_what_is_not_there_is_said(name, message):
    with pytest.raises(SetupError, match=message):
        extensions.find([name])


def test_code_that_fails_is_the_users_to_read(tmp_path):
    (tmp_path / "broken.py").write_text("1 / 0")
    with pytest.raises(SetupError, match="ZeroDivisionError: division by zero"):
        extensions.find([str(tmp_path / "broken.py")])


def test_answers_come_the_same_way(tmp_path):
    path = tmp_path / "answers_for_tests.py"
    path.write_text(
        "from edgewise.edge.server.answers import answers\n\n"
        "@answers('double/+')\nasync def double(caller, path, body):\n    return 2 * body\n"
    )
    app = tmp_path / "a.siddhi"
    app.write_text("define stream S (v int);\nfrom S select v insert into O;\n")
    assert [a.selector for a in apps.load(app, [str(path)]).answers] == ["double/+"]
    before = path.stat()
    path.write_text(path.read_text().replace("double/+", "double//"))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))  # in the same moment
    with pytest.raises(SetupError, match="cannot load"):
        apps.load(app, [str(path)])
