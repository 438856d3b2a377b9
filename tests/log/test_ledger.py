import pytest

from edgewise.errors import LogError
from edgewise.log.api import LogConfig
from edgewise.log.files import segment_bases
from edgewise.log.laws import SCHEMA, make_rows
from edgewise.log.ledger import archive_ledgers, find_logs, list_ledgers
from edgewise.log.segment_reader import SegmentReader
from edgewise.log.segment_writer import SegmentWriter


@pytest.fixture
def log(tmp_path):
    now = [1000]
    config = LogConfig(segment_bytes_max=10_000)
    directory = tmp_path / "data" / "S"
    writer = SegmentWriter.open(directory, SCHEMA, config, now_ms=lambda: now[0])
    for at in range(0, 300, 10):
        writer.append(make_rows(list(range(at, at + 10))))
        now[0] += 10
    writer.close()
    return directory


def test_ledgers_are_listed_with_their_offsets_and_times(log):
    found = list_ledgers(log)
    assert [entry.first for entry in found] == segment_bases(log)
    assert [entry.end for entry in found] == [*segment_bases(log)[1:], 300]
    assert all((entry.ts_min, entry.ts_max) == (entry.first, entry.end - 1) for entry in found)
    assert [entry.sealed for entry in found] == [True] * (len(found) - 1) + [False]
    assert all(entry.epochs == (1, 1) for entry in found)


def test_an_empty_log_has_one_ledger_without_times(tmp_path):
    SegmentWriter.open(tmp_path, SCHEMA).close()
    (only,) = list_ledgers(tmp_path)
    assert (only.first, only.end, only.ts_min, only.sealed) == (0, 0, None, False)


def test_old_ledgers_move_and_young_ones_stay(log):
    sealed = [entry for entry in list_ledgers(log) if entry.sealed]
    middle = sealed[len(sealed) // 2].sealed_ms
    assert archive_ledgers(log, now_ms=middle + 500, age_ms=500) == len(sealed) // 2 + 1
    assert archive_ledgers(log, now_ms=middle + 500, age_ms=500) == 0
    homes = [entry.storage for entry in list_ledgers(log)]
    assert homes == sorted(homes)
    assert archive_ledgers(log, now_ms=10**9, age_ms=0) == len(sealed) - len(sealed) // 2 - 1
    assert [entry.first for entry in list_ledgers(log)] == segment_bases(log)
    assert SegmentReader.open(log).head().offset == 300


def test_logs_are_found_under_a_data_directory(log, tmp_path):
    assert list(find_logs(tmp_path)) == [log]
    assert list(find_logs(log)) == [log]
    with pytest.raises(LogError, match="there is no log here"):
        list_ledgers(tmp_path)
