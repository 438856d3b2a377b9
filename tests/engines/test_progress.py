from tests.engines.test_host import batch, job

from edgewise.engines.host import Cut, run_part
from edgewise.engines.progress import RECENT_BATCHES, Progress
from edgewise.log.api import CLOCK_NONE


def test_rates_and_times_are_over_the_recent_batches_and_totals_over_all():
    progress = Progress(partitions=3)
    for number in range(2 * RECENT_BATCHES):
        slow = number < RECENT_BATCHES
        cut = Cut(number, {"S": number * 10}, {"S": number * 10 + 10}, 0, 1000 + number)
        progress.batch(cut, 2, {"read": 9.0 if slow else 0.002, "run": 0.003})
    view = progress.view(5000, {"S": 450}, 123)
    assert (view["rows_in"], view["rows_out"]) == (400, 80)
    assert view["processing_rows_per_s"] == 2000.0
    assert view["batch_ms"] == {"read": 2.0, "run": 3.0}
    assert (view["watermark"], view["watermark_lag_ms"]) == (1039, 3961)
    assert view["backlog_rows"] == 50
    assert view["state_bytes"] == 123


def test_keys_are_of_the_last_batch_and_counts_of_all(tmp_path):
    progress = Progress()
    text = "define stream S (k string); from S[str:regexp(k, k)] select k, count() as n "
    text += "group by k insert into O;"
    for version, keys in enumerate(["a(", "b("]):
        work = job(version, tmp_path, text)
        progress.tell(work.fragment.name, run_part(work, 0, [batch(*keys, first=2 * version)]))
    view = progress.view(0, {}, 0)
    assert (view["state_keys"], view["keys"]) == (2, {"query1": 2})
    assert view["counts"] == {"faults": {"S": 2}}


def test_before_the_first_batch_there_is_nothing_to_divide_by():
    view = Progress().view(5000, {"S": 3}, 0)
    assert (view["processing_rows_per_s"], view["backlog_rows"]) == (0.0, 3)
    assert (view["watermark"], view["watermark_lag_ms"], view["batch_ms"]) == (None, None, {})


def test_marks_are_no_events_and_a_log_without_any_has_no_time():
    progress = Progress(offsets={"S": 7})
    assert progress.view(5000, {"S": 9}, 0)["backlog_rows"] == 2
    progress.batch(Cut(0, {"S": 7}, {"S": 9}, CLOCK_NONE, CLOCK_NONE), 0, {"run": 1.0}, 1)
    view = progress.view(5000, {"S": 9}, 0)
    assert (view["rows_in"], view["backlog_rows"], view["watermark"]) == (1, 0, None)
