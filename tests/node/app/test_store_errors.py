"""Stores that cannot work are found when an app is checked, where they stand in its text."""

from edgewise.lang import compile_app
from edgewise.node.app.store_errors import KEPT, find_store_errors

TEXT = """define stream S (k string, v long);
@store(type='rdbms', jdbc.ulr='x')
define table A (k string);
@store(type='rdbms', jdbc.url='jdbc:h2:./a', @cache(size='5', cache.policy='LFU'))
define table B (k string);
@store(type='hbase')
define table C (k string);
@store(type='rdbms', jdbc.url='jdbc:h2:./a')
define aggregation D from S select k, sum(v) as t group by k aggregate every sec...min;
from S select k insert into B;
"""


def test_each_store_is_reported_on_its_line():
    found = find_store_errors(compile_app(TEXT).app, TEXT)
    assert [(p.span.line, p.severity) for p in found] == [
        (2, "error"),
        (4, "warning"),
        (4, "warning"),
        (6, "warning"),
        (8, "warning"),
    ]
    assert "did you mean 'jdbc.url'" in found[0].message
    assert "not connected" in found[3].message
    assert found[4].message == KEPT
