import json

import pytest
from tests.golden import scripts

from edgewise.lang import compile_app
from edgewise.plan.explain import build_outline, explain_json, explain_text


@pytest.mark.parametrize("path", scripts("explain"), ids=lambda path: path.stem)
def test_what_explain_says(golden, path):
    golden(path, lambda text: explain_text(compile_app(text).app))


APP = "define stream S (k string, v int); from S select k, sum(v) as t group by k insert into O;"


def test_json_holds_what_the_tree_says():
    found = json.loads(explain_json(compile_app(APP).app))
    assert found["fragments"][0]["keys"] == [["S", ["k"]]]
    assert found["fragments"][0]["queries"][0]["state"] == "one row per k"


def test_notes_of_others_stand_with_their_query():
    app = compile_app(APP).app
    assert "note   precise" in explain_text(app, {"query1": ("precise",)})
    assert build_outline(app, {"query1": ("precise",)}).fragments[0].queries[0].notes == (
        "precise",
    )
