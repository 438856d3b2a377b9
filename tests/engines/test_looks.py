"""What is shown of state is what a kernel holds."""

import pytest
from tests.engines.test_host import batch, job

from edgewise.engines.homes import home
from edgewise.engines.host import run_part
from edgewise.engines.looks import disk_bytes, looks
from edgewise.errors import StateError

WINDOW = """
define stream S (k string);
from S#window.time(1 sec) select k, count() as n group by k insert into O;
"""
PARTITION = """
define stream S (k string);
partition with (k of S) begin from S#window.time(1 sec) select count() as n insert into O; end;
"""


@pytest.mark.parametrize("text", [WINDOW, PARTITION])
def test_keys_versions_and_what_waits_longest(tmp_path, text):
    root = tmp_path / "3" / "query1"
    run_part(job(0, root, text), 0, [batch("a", "b", first=0)])
    run_part(job(1, root, text), 0, [batch("a", first=2)])
    (tmp_path / "2" / "query1" / "0").mkdir(parents=True)  # a generation that was left
    [found] = looks(home(tmp_path), largest=1)
    assert (found.fragment, found.partition, found.keys) == ("query1", 0, 2)
    assert (found.oldest_version, found.version, found.files) == (0, 1, 2)
    assert (found.waits_since, found.due) == (0, 1000)
    assert found.largest[0].key == "('a',)"
    assert found.disk_bytes == disk_bytes(home(tmp_path)) > found.state_bytes > 0


def test_a_torn_file_is_named(tmp_path):
    root = tmp_path / "0" / "query1"
    run_part(job(0, root), 0, [batch("a", first=0)])
    (root / "0" / "0.delta").write_bytes(b"EWS1")
    with pytest.raises(StateError, match=r"0\.delta is torn"):
        list(looks(home(tmp_path)))


def test_nothing_is_shown_where_nothing_is(tmp_path):
    assert (list(looks(home(tmp_path))), disk_bytes(home(tmp_path))) == ([], 0)
