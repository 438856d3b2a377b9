import pytest

from edgewise.lang import compile_app
from edgewise.plan.rules.column_pruning import find_needed_attributes, find_read_attributes
from edgewise.plan.rules.keys import split_into_fragments

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
        ("from A#window.frequent(2) select k", {"A": ("k", "v", "w", "o")}),
        ("from A#window.frequent(2, v) select k", {"A": ("k", "v")}),
        ("from A#window.expression('count() < 3') select k", {"A": ("k", "v", "w", "o")}),
    ],
)
def test_attributes_that_someone_looks_at(text, used):
    app = compile_app(f"{DEFINE} {text} insert into O;").app
    assert find_needed_attributes(app, app.queries) == used


def of_fragments(text):
    app = compile_app(DEFINE + text).app
    return [find_read_attributes(app, fragment) for fragment in split_into_fragments(app)]


def test_a_fragment_reads_the_key_of_its_partition():
    text = "partition with (k of A) begin from A#window.length(2) select sum(v) as t return; end;"
    assert of_fragments(text) == [{"A": ("k", "v")}]


def test_a_fragment_reads_whole_what_may_become_a_fault():
    text = "@OnError(action='STREAM') define stream C (k string, v int); from C select k return;"
    assert of_fragments(text) == [{"C": ("k", "v")}]


def test_each_fragment_has_its_own_view_of_a_stream():
    text = "from A select k, count() as n group by k insert into X;"
    assert of_fragments(text) == [{"A": ("k",)}]
