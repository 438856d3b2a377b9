import pytest
from tests.support.compiled_plans import planned, refused


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("@sink(path='x') define stream O (v int);", "@sink has no type"),
        ("@async(workers='0') define stream O (v int);", "workers of @async must be 1 or more"),
        ("@OnError(action='X') define stream O (v int);",
            "the action of @OnError is LOG, STREAM or STORE"),
        ("@app:async('true') define stream O (v int);",
            "@app:async is not supported for a whole app"),
        ("@app:timezone('Moon') define stream O (v int);", "there is no time zone 'Moon'"),
        ("@app:playback(idle.time='2') define stream O (v int);", "idle.time='2' is not a time"),
    ],
)  # fmt: skip
def test_what_is_refused(text, message):
    assert refused(text) == [message]


def test_an_app_is_named_by_its_annotation():
    assert planned("@App:name('watch') define stream O (v int);").name == "watch"
    assert planned("").name == "app"


def test_the_days_of_an_app_are_those_of_its_zone():
    text = "define stream O (v int); define aggregation G from O select v aggregate every day;"
    assert planned("@app:timezone('Asia/Tokyo') " + text).aggregations[0].zone == "Asia/Tokyo"
    assert planned(text).aggregations[0].zone == "UTC"
