import pytest

from edgewise.errors import LogError
from edgewise.log.places import open_reader


@pytest.mark.integration
@pytest.mark.timeout(120)
def test_no_broker_and_no_topic_are_said(kafka_broker, monkeypatch):
    with pytest.raises(LogError, match=r"there is no (topic nothing|log)"):
        open_reader(f"kafka://{kafka_broker.address}/nothing")
    monkeypatch.setattr("edgewise.log.kafka_reader.REQUEST_S", 1.0)
    with pytest.raises(LogError, match=r"127\.0\.0\.1:1"):
        open_reader("kafka://127.0.0.1:1/x")
