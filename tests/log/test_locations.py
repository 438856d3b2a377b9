import pytest

from edgewise.errors import LogError
from edgewise.log.laws import SCHEMA, make_rows
from edgewise.log.locations import open_lease, open_reader, open_writer, parse_kafka_location


def test_a_directory_is_a_place(tmp_path):
    writer = open_writer(str(tmp_path / "log"), SCHEMA)
    writer.append(make_rows([1]))
    writer.close()
    reader = open_reader(str(tmp_path / "log"))
    assert reader.head().offset == 1
    reader.close()


def test_a_topic_is_a_place():
    assert parse_kafka_location("kafka://127.0.0.1:9092/logins") == ("127.0.0.1:9092", "logins")
    assert parse_kafka_location("data/logins") == ("", "")


@pytest.mark.parametrize("address", ["kafka://host:1", "kafka:///topic", "kafka://h:1/a/b"])
def test_half_an_address_is_refused(address):
    with pytest.raises(LogError, match="kafka://host:port/topic"):
        parse_kafka_location(address)


def test_a_lease_is_kept_with_the_logs(tmp_path):
    lease = open_lease(str(tmp_path))
    assert lease.try_acquire()
    assert (tmp_path / "lease").is_dir()
    assert type(open_lease("kafka://127.0.0.1:1/shop")).__name__ == "KafkaLease"
