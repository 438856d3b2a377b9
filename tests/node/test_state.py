import json

import pytest
from tests.engines.test_host import batch, job

from edgewise import cli
from edgewise.engines.host import run_part
from edgewise.errors import SetupError
from edgewise.node.state import lines

WINDOW = """
define stream S (k string);
from S#window.time(1 sec) select k, count() as n group by k insert into O;
"""


@pytest.fixture
def data(tmp_path):
    root = tmp_path / "checkpoint" / "shop" / "state" / "0" / "query1"
    for part, keys in enumerate([("a", "b"), ("c",)]):
        run_part(job(0, root, WINDOW), part, [batch(*keys, first=0)])
    return tmp_path


def test_a_person_reads_a_table(data, capsys):
    assert cli.main(["state", str(data), "--largest", "1"]) == 0
    head, titles, first, second, *keys = capsys.readouterr().out.splitlines()
    assert head.startswith("app shop: 3 keys, ")
    assert titles.split()[:3] == ["fragment", "part", "versions"]
    assert first.split()[:4] == ["query1", "0", "0-0", "1"]
    assert second.endswith("offset 0     1970-01-01T00:00:01.000Z")
    assert "query1 1: ('c',) holds" in keys[-1]


def test_a_program_reads_json(data):
    found = [json.loads(line) for line in lines(str(data / "checkpoint" / "shop"), as_json=True)]
    assert [(f["partition"], f["keys"]) for f in found] == [(0, 2), (1, 1)]


def test_a_place_without_state_is_said(tmp_path):
    with pytest.raises(SetupError, match="no state in it"):
        list(lines(str(tmp_path)))
