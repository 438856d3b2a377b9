"""The laws against a real kafka_broker, and what happens when it stops, dies or comes back."""

import threading

import pytest

from edgewise.errors import LogError
from edgewise.log import kafka_commit, kafka_writer_group
from edgewise.log.copy_log import copy_log
from edgewise.log.laws import LAWS, SCHEMA, make_rows, read_all
from edgewise.log.segment_reader import SegmentReader
from edgewise.log.segment_writer import SegmentWriter

SESSION_S = 2
CUT_S = 3.5  # longer than the lease of the writer


@pytest.mark.integration
@pytest.mark.timeout(120)
@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
def test_kafka_keeps_the_law(law, kafka_subject):
    law(kafka_subject)


@pytest.mark.timeout(180)
@pytest.mark.parametrize(
    "end",
    [
        pytest.param("kill", marks=pytest.mark.integration),
        pytest.param("freeze beyond patience", marks=pytest.mark.integration),
        pytest.param("stop", marks=pytest.mark.slow),
        pytest.param("freeze", marks=pytest.mark.slow),
    ],
)
def test_a_broker_that_goes_and_comes_back_loses_nothing_and_doubles_nothing(
    kafka_broker, kafka_subject, end, monkeypatch
):
    monkeypatch.setattr(kafka_writer_group, "_SESSION_S", SESSION_S)
    if end == "freeze beyond patience":  # the commit is given up, and nobody knows if it happened
        monkeypatch.setattr(kafka_commit, "COMMIT_S", 1.0)
        monkeypatch.setattr(kafka_commit, "REQUEST_S", 2.0)
    writer = kafka_subject.writer(SCHEMA)
    acknowledged = []
    stopping = threading.Event()
    said = []

    def produce():
        at = 0
        while not stopping.is_set():
            try:
                writer.append(make_rows([at]), producer="p", sequence=at)
            except LogError as error:  # what was not acknowledged is sent again
                said.append(str(error))
                threading.Event().wait(0.2)
                continue
            acknowledged.append(at)
            at += 1

    thread = threading.Thread(target=produce)
    thread.start()
    wait_for(lambda: len(acknowledged) > 20)
    getattr(kafka_broker, end.split()[0])()
    before = len(acknowledged)
    if end.startswith("freeze"):
        threading.Event().wait(CUT_S)
        kafka_broker.thaw()
    else:
        kafka_broker.start()
    try:
        wait_for(lambda: len(acknowledged) > before + 20)
    finally:
        stopping.set()
        thread.join()
        print(set(said))
    times = read_all(kafka_subject.reader()).column("_ts").to_pylist()
    assert times[: len(acknowledged)] == acknowledged
    assert len(times) - len(acknowledged) <= 1
    print(f"faults tried: 1 broker {end}; acknowledged appends checked: {len(acknowledged)}")


def wait_for(condition):
    for _ in range(10_000):
        if condition():
            return
        threading.Event().wait(0.01)
    raise AssertionError("did not happen")


@pytest.mark.integration
@pytest.mark.timeout(120)
def test_a_log_is_copied_to_kafka_and_back(kafka_subject, tmp_path):
    source = SegmentWriter.open(tmp_path / "a", SCHEMA)
    for at in range(0, 500, 20):
        source.append(make_rows(list(range(at, at + 20))))
    source.close()
    here = SegmentReader.open(tmp_path / "a")
    writer = kafka_subject.writer(SCHEMA)
    assert copy_log(here, writer, "a", end=200) == (0, 200)
    assert copy_log(here, writer, "a") == (200, 500)
    back = SegmentWriter.open(tmp_path / "b", SCHEMA)
    copy_log(kafka_subject.reader(), back, "kafka")
    back.close()
    assert read_all(SegmentReader.open(tmp_path / "b")).equals(read_all(here))
