import json

import pytest

from edgewise.errors import LogError
from edgewise.event.arrow import record_batch, to_arrow
from edgewise.event.schema import Attribute, Schema
from edgewise.event.types import AttrType
from edgewise.log.api import LogConfig
from edgewise.log.files import segment_bases, segment_path
from edgewise.log.laws import SCHEMA, make_rows, read_all
from edgewise.log.segment_reader import SegmentReader
from edgewise.log.segment_writer import SegmentWriter


@pytest.fixture
def log(tmp_path):
    directory = tmp_path / "data" / "S"
    writer = SegmentWriter.open(directory, SCHEMA, LogConfig(segment_bytes_max=10_000))
    for at in range(0, 200, 10):
        writer.append(make_rows(list(range(at, at + 10))))
    writer.close()
    return directory


def test_list(log, call):
    code, out = call("list", log.parent)
    assert code == 0
    assert f"{log}: 200 events, {len(segment_bases(log))} ledgers" in out
    assert "active" in out.splitlines()[-1]
    assert "1970-01-01T00:00:00.199Z" in out


def test_inspect(log, call):
    code, out = call("inspect", log)
    assert code == 0
    assert "define stream S (k string, i int, n long, f float, d double, b bool, o object);" in out
    assert "offsets   0 to 200" in out
    assert "clock     1970-01-01T00:00:00.199Z" in out


def test_verify_says_what_is_wrong_and_exits_1(log, call):
    assert call("verify", log.parent) == (
        0,
        f"{log}: 4 files, 200 events, {size(log)} bytes: good\n",
    )
    path = segment_path(log, 0)
    data = bytearray(path.read_bytes())
    data[2000] ^= 1
    path.write_bytes(data)
    code, out = call("verify", log)
    assert code == 1
    assert f"{path}: byte " in out


def size(log):
    return sum(f.stat().st_size for f in log.glob("*.seg"))


def test_copy_goes_on_where_it_stopped(log, call, tmp_path):
    target = tmp_path / "target"
    assert call("copy", log, target, "--to", 70) == (0, "copied offsets 0 to 70\n")
    assert call("copy", log, target) == (0, "copied offsets 70 to 200\n")
    assert call("copy", log, target) == (0, "copied offsets 200 to 200\n")
    assert read_all(SegmentReader.open(target)).equals(read_all(SegmentReader.open(log)))


def test_copy_takes_an_attribute_along_that_was_added_meanwhile(log, call, tmp_path):
    target = tmp_path / "target"
    call("copy", log, target)
    grown = Schema("S", (*SCHEMA.attributes, Attribute("level", AttrType.INT)))
    writer = SegmentWriter.open(log, grown, defaults={"level": 7})
    writer.append(
        record_batch(to_arrow(grown), [200], [200], [0], [[None]] * len(SCHEMA.names) + [[8]])
    )
    writer.close()
    assert call("copy", log, target) == (0, "copied offsets 200 to 201\n")
    copied = read_all(SegmentReader.open(target))
    assert copied.column("level").to_pylist() == [7] * 200 + [8]


def test_tail_from_an_offset_a_time_or_the_end(log, call):
    def offsets(*words):
        return [json.loads(line)["offset"] for line in call("tail", log, *words)[1].splitlines()]

    assert offsets() == list(range(190, 200))
    assert offsets("--last", 3) == [197, 198, 199]
    assert offsets("--from", 5, "-n", 2) == [5, 6]
    assert offsets("--time", 42, "-n", 1) == [42]
    assert offsets("--time", "1970-01-01T00:00:00.042", "-n", 1) == [42]


def test_archive_moves_what_is_old(log, call):
    assert call("archive", log)[1] == f"{log}: moved 0 ledgers to Parquet\n"
    assert call("archive", log.parent, "--days", 0)[1] == f"{log}: moved 3 ledgers to Parquet\n"
    assert call("verify", log)[0] == 0
    assert "parquet" in call("list", log)[1]


def test_where_there_is_no_log_it_is_said(call, tmp_path):
    with pytest.raises(LogError, match="there is no log in it"):
        call("list", tmp_path)
    with pytest.raises(LogError, match="no such directory"):
        call("verify", tmp_path / "x")


def test_repair_says_what_is_lost_and_mends_it_when_told_how(log, call, tmp_path):
    assert call("repair", log) == (0, "nothing is lost\n")
    call("copy", log, tmp_path / "copy")
    path = segment_path(log, 0)
    data = bytearray(path.read_bytes())
    data[2000] ^= 1
    path.write_bytes(data)
    code, out = call("repair", log)
    assert code == 1
    assert "(10 rows): the batch fails its checksum" in out
    assert "choose --skip, --restore LOCATION or --cut" in out
    code, out = call("repair", log, "--restore", tmp_path / "copy")
    assert (code, out.splitlines()[-1]) == (0, f"{log}: good")
    assert call("verify", log)[0] == 0
