"""What a table asks of its database, what it keeps, and when it writes nothing."""

from edgewise.kernel.operators.stored_table import StoredTable
from edgewise.kernel.runtime import Runtime


class ListBackend:
    """Rows in a list; answers every question with all of them."""

    def __init__(self, *rows):
        self.held, self.asked, self.refused = list(rows), [], 0

    def select(self, where):
        self.asked.append(where)
        return list(self.held)

    def insert(self, row):
        self.held.append(row)

    def replace(self, old, new):
        if new in self.held:
            return False
        self.held[self.held.index(old)] = new
        return True

    def delete(self, row):
        self.held.remove(row)

    def take_refused(self):
        refused, self.refused = self.refused, 0
        return refused


def open_table(*rows, cache_rows=0, cache_ms=0):
    table = StoredTable(Runtime(keyed=False), 2, (), cache_rows, cache_ms)
    table.open(ListBackend(*rows))
    return table, table.backend


def test_a_database_that_gives_too_many_rows_changes_only_those_of_the_test():
    table, backend = open_table(("a", 1), ("A", 2))
    assert table.update(lambda r: r[0] == "a", lambda _: ("a", 5), None, ((0, "==", "a"),))
    table.delete(lambda r: r[0] == "x", None, ())
    assert backend.held == [("a", 5), ("A", 2)]


def test_nothing_is_written_while_done_batches_are_fed_again():
    table, backend = open_table(("a", 1))
    table.writes = False
    table.insert(("b", 2))
    table.delete(lambda _: True)
    assert table.update(lambda _: True, lambda r: r) is True
    assert backend.held == [("a", 1)]


def test_refused_rows_are_counted():
    table, backend = open_table(("a", 1), ("b", 1))
    table.update(lambda r: r[0] == "a", lambda _: ("b", 1))
    backend.refused = 2
    table.count_refused()
    assert table.rt.faults == {"duplicate key": 3}


def test_answers_are_kept_until_a_write_or_their_time_and_no_more_than_declared():
    table, backend = open_table(("a", 1), cache_rows=2, cache_ms=100)

    def ask(key):
        return list(table.rows(None, ((0, "==", key),)))

    assert ask("a") == ask("a") == [("a", 1)]
    assert len(backend.asked) == 1
    table.rt.now = 100
    ask("a")
    assert len(backend.asked) == 2
    ask("b"), ask("c"), ask("a")
    assert len(backend.asked) == 5
    table.insert(("d", 1))
    assert len(ask("a")) == 2


def test_without_a_database_rows_are_kept_as_those_of_any_table():
    rt = Runtime(keyed=False)
    table = StoredTable(rt, 2, (0,))
    rt.fresh = lambda: [table.fresh()]
    rt.state(())
    table.insert(("a", 1))
    assert table.update(lambda _: True, lambda r: (r[0], 2), ("a",), ())
    assert list(table.content(rt.root, ())) == [(0, ("a", 2))]
    table.delete(lambda _: True, None, ())
    table.count_refused()
    assert list(table.rows(None, ())) == []
