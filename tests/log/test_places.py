import pytest

from edgewise.errors import LogError
from edgewise.log.laws import SCHEMA, rows_of
from edgewise.log.places import broker_and_topic, open_reader, open_writer


def test_a_directory_is_a_place(tmp_path):
    writer = open_writer(str(tmp_path / "log"), SCHEMA)
    writer.append(rows_of([1]))
    writer.close()
    reader = open_reader(str(tmp_path / "log"))
    assert reader.head().offset == 1
    reader.close()


def test_a_topic_is_a_place():
    assert broker_and_topic("kafka://127.0.0.1:9092/logins") == ("127.0.0.1:9092", "logins")
    assert broker_and_topic("data/logins") == ("", "")


@pytest.mark.parametrize("address", ["kafka://host:1", "kafka:///topic", "kafka://h:1/a/b"])
def test_half_an_address_is_refused(address):
    with pytest.raises(LogError, match="kafka://host:port/topic"):
        broker_and_topic(address)
