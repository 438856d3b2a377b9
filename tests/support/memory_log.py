"""A log in memory that can be full, slow or broken on demand: for tests of sources and sinks."""

import threading

import pyarrow as pa

from edgewise.errors import LogFull
from edgewise.event.arrow import to_arrow
from edgewise.event.position import Position
from edgewise.log.api import Appended


class MemoryLog:
    def __init__(self, schema):
        self.schema = to_arrow(schema)
        self.batches = []
        self.full = False
        self.open = threading.Event()  # cleared: appends wait, as on a slow disk
        self.open.set()
        self.appends = 0
        self._count = 0
        self._last = {}
        self._lock = threading.Lock()

    @property
    def head(self):
        return Position(1, self._count)

    def append(self, rows, *, producer="", sequence=-1):
        assert rows.schema.equals(self.schema)
        self.open.wait(10)
        with self._lock:
            if self.full:
                raise LogFull("0 bytes left on /data")
            if producer:
                last = self._last.get(producer)
                if last and sequence <= last[0]:
                    return Appended(last[1].first, last[1].end, duplicate=True)
            self.appends += 1
            self.batches.append(rows)
            got = Appended(self._count, self._count + rows.num_rows)
            self._count = got.end
            if producer:
                self._last[producer] = (sequence, got)
            return got

    def last_sequence(self, producer):
        return self._last[producer][0] if producer in self._last else -1

    def retain(self, _now_ms):
        return 0

    def close(self):
        pass

    def rows(self):
        return pa.Table.from_batches(self.batches, schema=self.schema).to_pylist()
