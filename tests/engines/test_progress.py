from tests.support.batch_jobs import build_batch, build_job

from edgewise.engines.batch.job import BatchRange
from edgewise.engines.batch.run import run_key_partition
from edgewise.engines.progress import RECENT_BATCHES, Progress
from edgewise.log.api import CLOCK_NONE


def test_rates_and_times_are_over_the_recent_batches_and_totals_over_all():
    progress = Progress(partitions=3)
    for number in range(2 * RECENT_BATCHES):
        slow = number < RECENT_BATCHES
        cut = BatchRange(number, {"S": number * 10}, {"S": number * 10 + 10}, 0, 1000 + number)
        progress.record_batch(cut, 2, {"read": 9.0 if slow else 0.002, "run": 0.003})
    view = progress.summarize(5000, {"S": 450}, 123)
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
        work = build_job(version, tmp_path, text)
        progress.record_fragment(
            work.fragment.name, run_key_partition(work, 0, [build_batch(*keys, first=2 * version)])
        )
    view = progress.summarize(0, {}, 0)
    assert (view["state_keys"], view["keys"]) == (2, {"query1": 2})
    assert view["counts"] == {"faults": {"S": 2}}


def test_before_the_first_batch_there_is_nothing_to_divide_by():
    view = Progress().summarize(5000, {"S": 3}, 0)
    assert (view["processing_rows_per_s"], view["backlog_rows"]) == (0.0, 3)
    assert (view["watermark"], view["watermark_lag_ms"], view["batch_ms"]) == (None, None, {})


def test_idle_ticks_are_no_events_and_a_log_without_events_has_no_time():
    progress = Progress(offsets={"S": 7})
    assert progress.summarize(5000, {"S": 9}, 0)["backlog_rows"] == 2
    progress.record_batch(
        BatchRange(0, {"S": 7}, {"S": 9}, CLOCK_NONE, CLOCK_NONE), 0, {"run": 1.0}, 1
    )
    view = progress.summarize(5000, {"S": 9}, 0)
    assert (view["rows_in"], view["backlog_rows"], view["watermark"]) == (1, 0, None)
