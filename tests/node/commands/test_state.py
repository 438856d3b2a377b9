import json

import pytest
from tests.support.batch_jobs import build_batch, build_job

from edgewise import cli
from edgewise.engines.batch.run import run_key_partition
from edgewise.errors import SetupError
from edgewise.node.commands.state import describe_state

WINDOW = """
define stream S (k string);
from S#window.time(1 sec) select k, count() as n group by k insert into O;
"""


@pytest.fixture
def data(tmp_path):
    root = tmp_path / "checkpoint" / "shop" / "state" / "0" / "query1"
    for part, keys in enumerate([("a", "b"), ("c",)]):
        run_key_partition(build_job(0, root, WINDOW), part, [build_batch(*keys, first=0)])
    return tmp_path


def test_a_person_reads_a_table(data, capsys):
    assert cli.main(["state", str(data), "--largest", "1"]) == 0
    head, titles, first, second, *keys = capsys.readouterr().out.splitlines()
    assert head.startswith("app shop: 3 keys, ")
    assert titles.split()[:3] == ["fragment", "partition", "versions"]
    assert first.split()[:4] == ["query1", "0", "0-0", "1"]
    assert second.endswith("offset 0     1970-01-01T00:00:01.000Z")
    assert "query1 1: ('c',) holds" in keys[-1]


def test_a_program_reads_json(data):
    found = [
        json.loads(line)
        for line in describe_state(str(data / "checkpoint" / "shop"), as_json=True)
    ]
    assert [(f["partition"], f["keys"]) for f in found] == [(0, 2), (1, 1)]


def test_a_place_without_state_is_said(tmp_path):
    with pytest.raises(SetupError, match="no state in it"):
        list(describe_state(str(tmp_path)))
