import json

import pytest

from edgewise import cli
from edgewise.engines.embedded.engine import EmbeddedEngine
from edgewise.errors import AppError, SetupError
from edgewise.event.event import Event
from edgewise.lang import compile_app
from edgewise.log.segment_writer import SegmentWriter
from edgewise.node.commands.query import answer_query
from edgewise.node.commands.replay import load_logs
from edgewise.node.data_dir import DataDirectory

TEXT = """@app:name('shop')
define stream Orders (symbol string, price double);
@PrimaryKey('symbol') define table Latest (symbol string, price double);
define window Recent (symbol string, price double) length(2);
define table Unused (k int);
from Orders select symbol, price update or insert into Latest on Latest.symbol == symbol;
from Orders select symbol, price insert into Recent;
from Orders select symbol insert into Seen;
"""
APP = compile_app(TEXT).app
ROWS = [("a", 1.5), ("b", 2.5), ("a", 3.5)]


@pytest.fixture
def data(tmp_path):
    """The data directory of an app that took three events and ended."""
    layout = DataDirectory(tmp_path)
    events = [Event("Orders", 1000 + at, row, at=at) for at, row in enumerate(ROWS)]
    load_logs(APP, events, layout)
    writers = {
        s.name: SegmentWriter.open(layout.log_directory(s.name), s.schema) for s in APP.outputs
    }
    engine = EmbeddedEngine.open(
        APP,
        logs={s.name: layout.log_directory(s.name) for s in APP.inputs},
        writers=writers,
        checkpoint=layout.checkpoint("shop"),
    )
    while engine.run_batch(0):
        pass
    engine.close()
    for writer in writers.values():
        writer.close()
    return layout


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("from Latest select symbol, price", [("a", 3.5), ("b", 2.5)]),
        ("from Latest on price > 3.0 select symbol", [("a",)]),
        ("from Latest select sum(price) as total", [(6.0,)]),
        ("from Recent select symbol, price", [("b", 2.5), ("a", 3.5)]),
        ("from Recent select symbol order by symbol limit 1", [("a",)]),
    ],
)
def test_a_query_sees_what_the_app_holds(data, query, rows):
    found = answer_query(APP, query, data.checkpoint("shop"))
    assert found.rows == rows
    assert found.as_of == 1002
    assert len(found.columns) == len(rows[0])


def test_the_command_prints_json_lines(data, tmp_path, capsys):
    file = tmp_path / "shop.siddhi"
    file.write_text(TEXT)
    query = "from Latest on symbol == 'a' select symbol, price"
    assert cli.main(["query", str(file), query, "--data", str(tmp_path)]) == 0
    assert json.loads(capsys.readouterr().out) == {"symbol": "a", "price": 3.5}


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("from Nope select x", "there is no table or window or aggregation 'Nope'"),
        ("delete Latest on Latest.symbol == 'a'", "changes a table"),
        ("select 'x' as symbol, 1.0 as price insert into Latest", "changes a table"),
    ],
)
def test_what_cannot_be_asked_is_refused(data, query, why):
    with pytest.raises(AppError, match=why):
        answer_query(APP, query, data.checkpoint("shop"))


def test_data_without_state_and_of_another_app_is_told_apart(data, tmp_path):
    with pytest.raises(SetupError, match="holds no state"):
        answer_query(APP, "from Latest select price", tmp_path / "none")
    other = compile_app(TEXT.replace("length(2)", "time(1 sec)")).app
    with pytest.raises(SetupError, match="another version"):
        answer_query(other, "from Latest select price", data.checkpoint("shop"))
