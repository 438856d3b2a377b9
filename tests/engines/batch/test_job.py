from tests.support.batch_jobs import build_job

from edgewise.engines.batch.job import BatchRange, build_tap_stream


def test_a_batch_range_counts_the_rows_of_all_streams():
    assert BatchRange(0, {"S": 3, "T": 0}, {"S": 5, "T": 1}, 0, 0).rows == 3


def test_the_outputs_of_a_job_are_targets_named_windows_and_faults():
    text = (
        "define stream S (k string); define window W (k string) length(2); from S insert into W;"
    )
    assert [s.name for s in build_job(0, "", text).outputs] == ["W", "$faults"]


def test_a_tap_stream_has_the_attributes_of_its_query():
    [query] = build_job(0, "").app.queries
    assert build_tap_stream(query).schema.names == ("k", "n")
