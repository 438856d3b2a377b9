import pytest

from edgewise.lang import compile_app
from edgewise.plan.rules.projection import needed

DEFINE = "define stream A (k string, v int, w int, o object); define stream B (k string, v int);"


@pytest.mark.parametrize(
    ("text", "used"),
    [
        ("from A[w > 1] select k", {"A": ("k", "w")}),
        ("from A select count() as n group by k", {"A": ("k",)}),
        ("from A#window.sort(2, v) select k having w > 1", {"A": ("k", "v", "w")}),
        ("from a=A -> b=B[k == a.k] select a.v as x", {"A": ("k", "v"), "B": ("k",)}),
        (
            "from A#window.length(1) join B on A.k == B.k select B.v as x",
            {"A": ("k",), "B": ("k", "v")},
        ),
        ("from A#log() select k", {"A": ("k", "v", "w", "o")}),
        ("from A select k order by v", {"A": ("k", "v")}),
    ],
)
def test_attributes_that_someone_looks_at(text, used):
    app = compile_app(f"{DEFINE} {text} insert into O;").app
    assert needed(app, app.queries) == used
