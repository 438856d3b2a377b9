"""Old ledgers to Parquet while the node runs, by age and by size, and what that came to.

The node does it for all logs of the app, those the engine writes too: a sealed ledger has no
owner, and moving one needs no writer. One ledger moves at a time; logs in Kafka have none.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from edgewise.errors import LogError
from edgewise.log.ledger import select_for_archive
from edgewise.log.parquet import move_to_parquet

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ArchiveConfig:
    """None: not by this. `bytes_max` is what sealed segments of one log may take as they are."""

    age_ms: int | None = None
    bytes_max: int | None = None

    @property
    def wanted(self) -> bool:
        return self.age_ms is not None or self.bytes_max is not None


class Archiver:
    """`logs` are directories by stream."""

    def __init__(self, config: ArchiveConfig, logs: Mapping[str, Path]) -> None:
        self._config = config
        self._logs = dict(logs)
        self.ledgers: Counter[str] = Counter()
        self.bytes: Counter[str] = Counter()  # of the segments that went
        self.failures: Counter[str] = Counter()

    def run(self, now_ms: int) -> int:
        """Move what is due; answers how many ledgers. For a thread: it may take long."""
        config, moved = self._config, 0
        for stream, log in self._logs.items():
            try:
                for ledger in select_for_archive(log, now_ms, config.age_ms, config.bytes_max):
                    if move_to_parquet(log, ledger.first):
                        moved += 1
                        self.ledgers[stream] += 1
                        self.bytes[stream] += ledger.bytes
            except (LogError, OSError) as error:
                # A full disk, or a ledger that is damaged: it stays as it is and is tried again.
                self.failures[stream] += 1
                logger.warning("%s: no ledger was moved to Parquet: %s", log, error)
        return moved

    def metrics(self) -> str:
        return "".join(f"{line}\n" for line in self._lines())

    def _lines(self) -> Iterator[str]:
        for name, help_text, counts in (
            ("ledgers", "Ledgers moved to Parquet.", self.ledgers),
            ("bytes", "Bytes of segments moved to Parquet.", self.bytes),
            ("failures", "Moves to Parquet that failed.", self.failures),
        ):
            metric = f"edgewise_log_archived_{name}_total"
            yield f"# HELP {metric} {help_text}"
            yield f"# TYPE {metric} counter"
            for stream in self._logs:
                yield f'{metric}{{stream="{stream}"}} {counts[stream]}'
