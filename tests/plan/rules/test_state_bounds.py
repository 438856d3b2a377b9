import pytest

from edgewise.lang import compile_app
from edgewise.plan.rules.state_bounds import derive_state_bounds

DEFINE = "define stream A (k string, v int); define table T (k string);"


def of(text):
    app = compile_app(DEFINE + text).app
    return derive_state_bounds(app)[app.queries[-1].name]


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("from A", "none"),
        ("from A select count() as n", "one row"),
        ("from A select k, count() as n group by k", "one row per k"),
        ("from A#window.length(5)", "5 events"),
        ("from A#window.time(90 sec)", "events of 1 min 30 sec"),
        ("from A#window.timeLength(1 sec, 5)", "5 events of 1 sec"),
        ("from A#window.batch()", "one batch"),
        ("from A#window.length(5) join T on A.k == T.k select A.v as x", "5 events; table T"),
        ("from every a=A -> b=A within 1 sec select a.v as x", "partial matches of 1 sec"),
        ("from a=A -> b=A select a.v as x", "one partial match"),
        ("from every a=A -> not A for 5 sec select a.v as x", "partial matches of 5 sec"),
    ],
)
def test_what_is_kept(text, kept):
    found = of(text + " insert into O;")
    assert (found.text, found.why) == (kept, "")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("from every a=A -> b=A select a.v as x", "'every' starts a match that nothing ends"),
        ("from a=A<2:> -> b=A select b.v as x", "a count without an upper end collects events"),
        ("from a=A+, b=A select b.v as x", "a count without an upper end collects events"),
    ],
)
def test_what_grows_without_end(text, why):
    assert of(text + " insert into O;").why == why


def test_keys_of_a_partition():
    text = "partition with (k of A) begin from A#window.length(2) insert into O; end;"
    assert of(text).why == "keys of the partition are never freed"
    purge = "@purge(enable='true', interval='1 sec', idle.period='1 min') "
    found = of(purge + text)
    assert (found.text, found.why) == ("2 events, per key, freed when idle 1 min", "")
