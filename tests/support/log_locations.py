"""Open the log of one directory again and again, for the laws; close what was opened."""

from edgewise.log.api import DEFAULTS
from edgewise.log.segment_reader import SegmentReader
from edgewise.log.segment_writer import SegmentWriter


class SegmentLogSubject:
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
