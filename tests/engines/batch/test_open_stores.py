"""An app with tables in a database: the same rows, each batch written once, wherever it stops."""

import random
import sqlite3

import pytest
from tests.engines.embedded.test_engine import NEVER_S, crash, open_live

from edgewise.event.event import Event
from edgewise.lang import compile_app
from edgewise.log.segment_writer import SegmentWriter
from edgewise.node.commands.replay import load_logs
from edgewise.node.data_dir import DataDirectory

APP = """
define stream Sale (item string, amount long);
@store(type='rdbms', datasource='shop') define table Sales (item string, amount long);
@store(type='rdbms', datasource='shop') @primaryKey('item')
define table Totals (item string, total long);
from Sale select item, amount insert into Sales;
from Sale[not (Totals.item == item in Totals)] select item, 0L as total insert into Totals;
from Sale select item, amount update Totals set Totals.total = Totals.total + amount
  on Totals.item == item;
from Sale join Totals on Totals.item == Sale.item select Sale.item, Totals.total
insert into Report;
"""


@pytest.mark.parametrize("seed", range(4))
def test_crashes_write_no_batch_twice(tmp_path, seed):
    dice = random.Random(seed)
    app = compile_app(APP).app
    layout = DataDirectory(tmp_path)
    sales = [(dice.choice("abc"), dice.randrange(10)) for _ in range(40)]
    load_logs(app, [Event("Sale", 1000 + i, sale) for i, sale in enumerate(sales)], layout)
    writers = {
        s.name: SegmentWriter.open(layout.log_directory(s.name), s.schema) for s in app.outputs
    }

    def reopen():
        interval_s = dice.choice([0, NEVER_S])
        return open_live(app, layout, writers, dice.choice([1, 7]), save_interval_s=interval_s)

    live = reopen()
    while live.run_batch(0):
        if dice.random() < 0.3:
            crash(live)
            live = reopen()
    live.close()
    for writer in writers.values():
        writer.close()
    [file] = (layout.checkpoint("app") / "stores").glob("*.db")
    with sqlite3.connect(file) as database:
        assert sorted(database.execute("select item, amount from Sales")) == sorted(sales)
        totals = dict(database.execute("select item, total from Totals"))
    database.close()
    assert totals == {i: sum(a for item, a in sales if item == i) for i in {s[0] for s in sales}}


def test_a_batch_that_failed_after_its_commit_is_not_written_again(tmp_path, monkeypatch):
    """The commit is before the append of the rows: a crash between them repeats the batch."""
    app = compile_app(APP).app
    layout = DataDirectory(tmp_path)
    load_logs(app, [Event("Sale", 1000 + i, ("a", 1)) for i in range(3)], layout)
    writers = {
        s.name: SegmentWriter.open(layout.log_directory(s.name), s.schema) for s in app.outputs
    }
    live = open_live(app, layout, writers, 10, save_interval_s=NEVER_S)

    def fail(*_arguments):
        raise OSError("disk is gone")

    with monkeypatch.context() as patch:
        patch.setattr("edgewise.engines.embedded.engine.append_outputs", fail)
        with pytest.raises(OSError, match="disk is gone"):
            live.run_batch(0)
    crash(live)
    live = open_live(app, layout, writers, 10, save_interval_s=NEVER_S)
    live.close()
    for writer in writers.values():
        writer.close()
    with sqlite3.connect(layout.checkpoint("app") / "stores" / "shop.db") as database:
        assert list(database.execute("select total from Totals")) == [(3,)]
        assert list(database.execute("select count(*) from Sales")) == [(3,)]
    database.close()
