from edgewise.lang.compiler import compile_app
from edgewise.node.app.app_topic import describe_app
from edgewise.node.app.sources_sinks import SourcesAndSinks

APP = """
@app:name('shop')
define stream S (k string, v int);
@sink(type='topic', path='totals/{k}')
define stream Totals (k string, total long);
@sink(type='topic', path='last', kind='series')
define stream Last (v int);
from S select k, sum(v) as total group by k insert into Totals;
from S select v insert into Last;
"""


def test_each_topic_sink_says_where_it_is_and_what_its_rows_have():
    app = compile_app(APP).app
    described = describe_app(app, SourcesAndSinks.parse(app), "embedded")
    totals = [["k", "string"], ["total", "long"]]
    assert described == {
        "name": "shop",
        "engine": "embedded",
        "topics": [
            {"stream": "Totals", "path": "totals/{k}", "kind": "record", "attributes": totals},
            {"stream": "Last", "path": "last", "kind": "series", "attributes": [["v", "int"]]},
        ],
    }
