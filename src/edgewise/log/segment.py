"""The embedded home of the log: segment files in a directory, nothing to install.

One writer (a file lock), any number of readers in any process. An append is written behind the
last durable byte, synced, and only then published in the head file; readers never look further.
So a crash can only leave bytes that nobody was told of, and the next writer cuts them away.
"""

from __future__ import annotations

from edgewise.log.reader import SegmentReader
from edgewise.log.writer import SegmentWriter

__all__ = ["SegmentReader", "SegmentWriter"]
