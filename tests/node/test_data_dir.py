import stat
from pathlib import Path
from types import SimpleNamespace

import pytest

from edgewise.lang import compile_app
from edgewise.log.api import LogConfig
from edgewise.node.data_dir import DataDirectory, describe_retention
from edgewise.node.log_locations import LogLocations


def test_every_stream_and_app_has_a_place_of_its_own():
    layout = DataDirectory(Path("d"))
    assert layout.log_directory("a") != layout.log_directory("b")
    assert layout.checkpoint("a") != layout.log_directory("a")
    assert str(layout.scratch).startswith("d")


def test_faults_stay_in_the_data_directory(tmp_path):
    layout = DataDirectory(tmp_path)
    assert layout.log_location("$faults") == str(tmp_path / "log" / "$faults")
    assert layout.log_location("!S") == str(tmp_path / "log" / "!S")


def test_what_the_next_node_needs_is_with_the_logs(tmp_path):
    layout = DataDirectory(tmp_path / "d1", LogLocations(str(tmp_path / "shared")))
    for path in (
        layout.checkpoint("a"),
        layout.cursor("O", 0),
        Path(layout.log_location("$faults")),
    ):
        assert path.is_relative_to(tmp_path / "shared")
    assert layout.lease_location == str(tmp_path / "shared")
    assert layout.scratch.is_relative_to(tmp_path / "d1")


def test_logs_in_kafka_have_their_lease_there_and_the_rest_stays(tmp_path):
    layout = DataDirectory(tmp_path, LogLocations("kafka://b:1/shop"))
    assert layout.lease_location == "kafka://b:1/shop"
    assert layout.checkpoint("a").is_relative_to(tmp_path)
    assert layout.log_location("$faults") == str(tmp_path / "log" / "$faults")


def test_the_lease_protects_the_logs_that_are_with_it(tmp_path):
    elsewhere = {"S": str(tmp_path / "elsewhere"), "T": str(tmp_path / "shared" / "t")}
    layout = DataDirectory(tmp_path / "d", LogLocations(str(tmp_path / "shared"), elsewhere))
    assert [layout.is_protected(s) for s in ("O", "S", "T")] == [True, False, True]


@pytest.mark.parametrize("mode", [None, 0o755, 0o700])
def test_a_data_directory_is_for_its_owner_only(tmp_path, mode):
    data = tmp_path / "data"
    if mode is not None:
        data.mkdir(mode)
        data.chmod(mode)
    line = DataDirectory(data).make_private()
    assert stat.S_IMODE(data.stat().st_mode) == 0o700
    assert ("mode was 755" in line) == (mode == 0o755)


def test_the_logs_of_an_app_share_a_part_of_the_disk(tmp_path, monkeypatch):
    app = compile_app("define stream S (v int); from S select v insert into O;").app
    data_dir = DataDirectory(tmp_path)
    monkeypatch.setattr("shutil.disk_usage", lambda _path: SimpleNamespace(total=8_000))
    bounded = data_dir.bound_retention(app, LogConfig(retain_ms=5), 0.25)
    assert bounded == LogConfig(retain_ms=5, retain_bytes=1_000)
    own = LogConfig(retain_bytes=7)
    assert data_dir.bound_retention(app, own, 0.25) is own
    assert data_dir.bound_retention(app, LogConfig(), 0) == LogConfig()
    in_kafka = DataDirectory(tmp_path, LogLocations.parse(["kafka://h:1/t"], app))
    assert in_kafka.bound_retention(app, LogConfig(), 0.25) == LogConfig()


def test_what_logs_keep_is_described():
    assert describe_retention(LogConfig()) == "each log keeps everything"
    both = describe_retention(LogConfig(retain_ms=7 * 24 * 3_600_000, retain_bytes=3 * 1024**3))
    assert both.startswith("each log keeps 168 hours and at most 3,072 MB")
