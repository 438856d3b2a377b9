import threading

import pytest

from edgewise.errors import LogError, OutOfRange
from edgewise.log import retrying_reader
from edgewise.log.laws import SCHEMA, make_rows
from edgewise.log.memory import MemoryLog
from edgewise.log.retrying_reader import RetryingReader


class Moody:
    """Every second call finds no broker."""

    def __init__(self, reader):
        self._reader = reader
        self.refusals = 0
        self._calls = 0

    @property
    def schema(self):
        return self._reader.schema

    def __getattr__(self, name):
        def asked(*arguments):
            self._calls += 1
            if self._calls % 2:
                self.refusals += 1
                raise LogError("no broker")
            return getattr(self._reader, name)(*arguments)

        return asked

    def read(self, start, end, columns=None):
        for batch in self._reader.read(start, end, columns):
            yield batch
            self._calls += 1
            if self._calls % 2:
                self.refusals += 1
                raise LogError("no broker")


@pytest.fixture
def log(monkeypatch):
    monkeypatch.setattr(retrying_reader, "PAUSE_S", 0.001)
    place = MemoryLog()
    writer = place.writer(SCHEMA)
    for at in range(20):
        writer.append(make_rows([at, at]))
    return place


def test_what_a_broker_does_not_answer_is_asked_again(log):
    moody = Moody(log.reader())
    reader = RetryingReader(moody)
    assert (reader.earliest(), reader.head().offset, reader.clock(4)) == (0, 40, 1)
    offsets = [b.first for b in reader.read(0, 40)]
    assert offsets == list(range(0, 40, 2)), "each batch once, in order"
    assert moody.refusals > 10
    assert {reader.wait(0, 0.01), reader.wait(0, 0.01)} == {True, False}
    assert reader.schema == log.schema


def test_what_is_gone_for_good_is_said_at_once(log):
    with pytest.raises(OutOfRange):
        list(RetryingReader(log.reader()).read(0, 99))


def test_closing_ends_the_waiting(log, monkeypatch):
    monkeypatch.setattr(retrying_reader, "PAUSE_S", 60)

    class Away:
        def head(self):
            raise LogError("no broker")

        def close(self):
            pass

    reader = RetryingReader(Away())
    threading.Timer(0.05, reader.close).start()
    with pytest.raises(LogError, match="no broker"):
        reader.head()
