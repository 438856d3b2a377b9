import pytest

from edgewise.lang import compile_app
from edgewise.node.changes import unlike
from edgewise.node.ends import Ends

APP = "@app:name('x') define stream S (k string, v int);"
QUERY = "from S select k insert into O;"


def ends(text):
    app = compile_app(text).app
    return app, Ends.of(app)


def test_queries_and_topics_may_change():
    topic = "@sink(type='topic', path='p') define stream P (v int); from S select v insert into P;"
    assert not unlike(ends(APP + QUERY), ends(APP + topic), "embedded")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (APP.replace("'x'", "'y'") + QUERY, "called 'y' now, not 'x'"),
        (APP.replace("v int", "v long") + QUERY, "'S' has other attributes now"),
        (APP + QUERY.replace("select k", "select v"), "'O' has other attributes now"),
        (APP + "define stream T (k string);" + QUERY, r"from outside changed \(T\)"),
        (
            APP.replace("define", "@source(type='http', path='/s', @map(type='json')) define")
            + QUERY,
            "a source or a sink changed",
        ),
    ],
)
def test_the_ends_may_not(text, why):
    import re

    assert re.search(why, unlike(ends(APP + QUERY), ends(text), "embedded"))


def test_spark_keeps_its_plan():
    same = ends(APP + QUERY)
    assert "embedded engine only" in unlike(same, same, "spark")
