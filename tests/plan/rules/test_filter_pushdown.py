from tests.golden import HERE

from edgewise.lang import compile_app
from edgewise.plan.rules.rewrite import rewrite
from edgewise.plan.text import show_input

DEFINE = "define stream S (k string, v int, b bool);"


def run(text):
    app = rewrite(compile_app(f"{DEFINE} {text} select k insert into O;").app)
    return "\n".join(f"{q.name}: {show_input(q.input)}" for q in app.queries)


def test_fixture(golden):
    golden(HERE / "rules" / "pushdown.txt", run)
