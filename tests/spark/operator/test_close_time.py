"""Closing waits as long as all durations of an app together."""

import pytest

from edgewise.lang.compiler import compile_app
from edgewise.spark.operator.close_time import find_close_ms

S = "define stream S (k string, v int); "


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("from S[v > 1] select k insert into O;", 0),
        ("from S#window.time(2 sec) select k insert into O;", 2000),
        ("from S#window.length(5) select k insert into O;", 0),
        ("from every a=S -> b=S within 3 sec select a.k as k insert into O;", 3000),
        ("from every a=S -> not S for 1 sec select a.k as k insert into O;", 1000),
        ("from S select k output last every 4 sec insert into O;", 4000),
        ("define window W (k string) time(1 sec); from S select k insert into W;", 1000),
    ],
)
def test_durations_add_up(text, ms):
    assert find_close_ms(compile_app(S + text).app) == ms
