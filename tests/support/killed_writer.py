"""A process that appends until it is killed, and says what was acknowledged."""

import threading
from pathlib import Path

from edgewise.log.api import LogConfig
from edgewise.log.laws import SCHEMA, make_rows
from edgewise.log.segment_writer import SegmentWriter

CONFIG = LogConfig(segment_bytes_max=60_000)


def append_until_killed(directory, said):
    """Each of three producers counts up; a number `n` is appended as `1 + n % 5` equal rows."""
    writer = SegmentWriter.open(Path(directory), SCHEMA, CONFIG)
    lock = threading.Lock()

    def produce(name):
        at = writer.last_sequence(name) + 1
        while True:
            writer.append(make_rows([at] * (1 + at % 5)), producer=name, sequence=at)
            with lock:
                said.send((name, at))
            at += 1

    threads = [threading.Thread(target=produce, args=(name,)) for name in "abc"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
