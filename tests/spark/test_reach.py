"""What executors must reach; a real cluster is asked by tests/integration/test_cluster.py."""

import pytest

from edgewise.errors import Unreachable
from edgewise.spark.masters import Master
from edgewise.spark.reach import MARK, find_mark, list_needs, require_reach


def test_logs_in_kafka_need_nothing_but_state(tmp_path):
    needs = list_needs({"S": "kafka://b:9092/s"}, "s3://bucket/state", tmp_path)
    assert [need.where for need in needs] == ["s3://bucket/state"]


def test_logs_in_files_need_the_log_and_a_place_for_results(tmp_path):
    needs = list_needs({"S": "/data/S"}, "/data/state", tmp_path / "staging")
    assert [n.where for n in needs] == ["/data/S", str(tmp_path / "staging"), "/data/state"]
    assert "--log kafka://" in needs[0].fix
    assert "--state" in needs[-1].fix


def test_a_mark_is_found_only_where_it_was_left(tmp_path):
    (tmp_path / f"{MARK}1").touch()
    assert find_mark(str(tmp_path), f"{MARK}1")
    assert not find_mark(str(tmp_path), f"{MARK}2")
    assert not find_mark(str(tmp_path / "none"), f"{MARK}1")


@pytest.mark.spark
def test_all_tasks_are_asked_and_no_mark_is_left(spark, tmp_path, monkeypatch):
    needs = list_needs({"S": str(tmp_path / "log")}, str(tmp_path / "state"), tmp_path / "staging")
    away = Master("spark://as-if", elsewhere=True)
    require_reach(spark, away, needs)
    assert [p.name for p in (tmp_path / "log").iterdir()] == []
    monkeypatch.setattr(
        "edgewise.spark.reach._ask_executors", lambda *_: [("h1", ()), ("h2", (2,))]
    )
    with pytest.raises(
        Unreachable, match=r"the state of queries is in .*/state, .* on h2 .*--state"
    ):
        require_reach(spark, away, needs)
