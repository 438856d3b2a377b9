import logging

import pytest

from edgewise.errors import LogError
from edgewise.log.api import LogConfig
from edgewise.log.laws import SCHEMA, make_rows, read_all
from edgewise.log.ledger import list_ledgers, select_for_archive
from edgewise.log.segment_reader import SegmentReader
from edgewise.log.segment_writer import SegmentWriter
from edgewise.node.upkeep import archiver as module
from edgewise.node.upkeep.archiver import ArchiveConfig, Archiver

CONFIG = LogConfig(segment_bytes_max=10_000)


@pytest.fixture
def log(tmp_path):
    clock = iter(range(0, 10**9, 1000))
    writer = SegmentWriter.open(tmp_path, SCHEMA, CONFIG, now_ms=lambda: next(clock))
    for at in range(0, 400, 10):
        writer.append(make_rows(list(range(at, at + 10))))
    yield tmp_path
    writer.close()


def homes(log):
    return [e.storage for e in list_ledgers(log)]


def test_nothing_moves_unless_it_is_wanted(log):
    assert not ArchiveConfig().wanted
    assert Archiver(ArchiveConfig(), {"S": log}).run(10**9) == 0
    assert "parquet" not in homes(log)


def test_ledgers_move_by_age_and_by_size_the_oldest_first(log):
    sealed = [e for e in list_ledgers(log) if e.sealed]
    keep = sealed[-1].bytes + sealed[-2].bytes
    archiver = Archiver(ArchiveConfig(bytes_max=keep), {"S": log})
    before = read_all(SegmentReader.open(log))
    assert archiver.run(0) == len(sealed) - 2
    assert homes(log) == ["parquet"] * (len(sealed) - 2) + ["segment"] * 3
    assert archiver.run(0) == 0
    by_age = Archiver(ArchiveConfig(age_ms=500), {"S": log})
    assert by_age.run(sealed[-2].sealed_ms + 500) == 1
    assert select_for_archive(log, 0, None, None) == []
    assert read_all(SegmentReader.open(log)).equals(before)
    lines = archiver.metrics().splitlines()
    assert f'edgewise_log_archived_ledgers_total{{stream="S"}} {len(sealed) - 2}' in lines
    gone = sum(e.bytes for e in sealed[:-2])
    assert f'edgewise_log_archived_bytes_total{{stream="S"}} {gone}' in lines
    assert 'edgewise_log_archived_failures_total{stream="S"} 0' in lines


def test_a_move_that_fails_is_counted_said_and_tried_again(log, monkeypatch, caplog):
    archiver = Archiver(ArchiveConfig(age_ms=0), {"S": log})

    def full(*_):
        raise LogError("no room")

    with monkeypatch.context() as patch, caplog.at_level(logging.WARNING):
        patch.setattr(module, "move_to_parquet", full)
        assert archiver.run(10**9) == 0
    assert (archiver.failures["S"], "no room" in caplog.text) == (1, True)
    assert archiver.run(10**9) > 0
