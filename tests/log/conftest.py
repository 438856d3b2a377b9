"""Homes and commands that the tests of the log share."""

import argparse
import itertools

import pytest

from edgewise.log.api import DEFAULTS
from edgewise.log.commands import add_arguments, run
from edgewise.log.locations import open_reader, open_writer

numbers = itertools.count()


class KafkaLogSubject:
    """A topic of its own; closes what it opened."""

    def __init__(self, address):
        self.place = f"kafka://{address}/laws-{next(numbers)}"
        self.opened = []

    def writer(self, schema, config=DEFAULTS):
        writer = open_writer(self.place, schema, config)
        self.opened.append(writer)
        return writer

    def reader(self):
        reader = open_reader(self.place)
        self.opened.append(reader)
        return reader

    def close(self):
        for thing in self.opened:
            thing.close()


@pytest.fixture
def kafka_subject(kafka_broker):
    place = KafkaLogSubject(kafka_broker.address)
    yield place
    place.close()


@pytest.fixture
def call(capsys):
    """`edgewise log WORDS`: its exit code and what it printed."""

    def command(*words):
        parser = argparse.ArgumentParser()
        add_arguments(parser)
        code = run(parser.parse_args([str(w) for w in words]))
        return code, capsys.readouterr().out

    return command
