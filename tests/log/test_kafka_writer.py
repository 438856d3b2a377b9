import pytest

from edgewise.errors import LogError, LogLocked
from edgewise.event.arrow import record_batch, to_arrow
from edgewise.event.schema import Schema
from edgewise.log.api import Appended
from edgewise.log.kafka_writer import KafkaWriter
from edgewise.log.laws import SCHEMA, make_rows, read_all
from edgewise.log.locations import open_writer


@pytest.mark.integration
@pytest.mark.timeout(120)
def test_a_writer_that_lost_the_log_cannot_append(kafka_subject):
    old = kafka_subject.writer(SCHEMA)
    old.append(make_rows([1]))
    new = open_writer(kafka_subject.place, SCHEMA, take_over=True)
    kafka_subject.opened.append(new)
    with pytest.raises(LogLocked, match="another writer took over from epoch 1"):
        old.append(make_rows([2]))
    with pytest.raises(LogError, match="took over"):
        old.append(make_rows([2]))
    assert new.append(make_rows([3])) == Appended(1, 2)
    assert read_all(kafka_subject.reader()).column("_ts").to_pylist() == [1, 3]


@pytest.mark.integration
@pytest.mark.timeout(120)
def test_an_attribute_is_added_with_a_default(kafka_subject):
    old, new = Schema.of("S", k="string"), Schema.of("S", k="string", v="long")
    writer = kafka_subject.writer(old)
    writer.append(record_batch(to_arrow(old), [1], [1], [0], [["a"]]))
    writer.close()
    with pytest.raises(LogError, match="attribute 'v' is new; give it a default"):
        kafka_subject.writer(new)
    address, topic = kafka_subject.place.removeprefix("kafka://").split("/")
    writer = KafkaWriter.open(address, topic, new, defaults={"v": 5})
    kafka_subject.opened.append(writer)
    writer.append(record_batch(to_arrow(new), [2], [2], [0], [["b"], [6]]))
    assert read_all(kafka_subject.reader()).column("v").to_pylist() == [5, 6]
