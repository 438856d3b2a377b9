"""What is shown of state is what a kernel holds."""

import pytest
from tests.support.batch_jobs import build_batch, build_job

from edgewise.engines.batch.run import run_key_partition
from edgewise.engines.state.inspect_state import inspect_state, sum_disk_bytes
from edgewise.engines.state.storage import open_storage
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
def test_a_report_has_keys_versions_and_the_oldest_waiting_event(tmp_path, text):
    root = tmp_path / "3" / "query1"
    run_key_partition(build_job(0, root, text), 0, [build_batch("a", "b", first=0)])
    run_key_partition(build_job(1, root, text), 0, [build_batch("a", first=2)])
    (tmp_path / "2" / "query1" / "0").mkdir(parents=True)  # a generation that was left
    [found] = inspect_state(open_storage(tmp_path), largest=1)
    assert (found.fragment, found.partition, found.keys) == ("query1", 0, 2)
    assert (found.oldest_version, found.version, found.files) == (0, 1, 2)
    assert (found.waits_since, found.due) == (0, 1000)
    assert found.largest[0].key == "('a',)"
    assert found.disk_bytes == sum_disk_bytes(open_storage(tmp_path)) > found.state_bytes > 0


def test_a_torn_file_is_named(tmp_path):
    root = tmp_path / "0" / "query1"
    run_key_partition(build_job(0, root), 0, [build_batch("a", first=0)])
    (root / "0" / "0.delta").write_bytes(b"EWS1")
    with pytest.raises(StateError, match=r"0\.delta is torn"):
        list(inspect_state(open_storage(tmp_path)))


def test_an_empty_directory_has_no_reports(tmp_path):
    assert (
        list(inspect_state(open_storage(tmp_path))),
        sum_disk_bytes(open_storage(tmp_path)),
    ) == ([], 0)
