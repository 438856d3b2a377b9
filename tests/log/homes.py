"""Homes for the laws: each opens one place again and again and closes what it opened."""

from edgewise.log.api import DEFAULTS
from edgewise.log.segment import SegmentReader, SegmentWriter


class SegmentHome:
    def __init__(self, directory):
        self.directory = directory
        self.opened = []

    def writer(self, schema, config=DEFAULTS):
        writer = SegmentWriter.open(self.directory, schema, config)
        self.opened.append(writer)
        return writer

    def reader(self):
        reader = SegmentReader.open(self.directory)
        self.opened.append(reader)
        return reader

    def close(self):
        for thing in self.opened:
            thing.close()
