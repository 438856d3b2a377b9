import pytest

from edgewise.errors import LogCorrupt
from edgewise.log.head import SLOTS, HeadFile, LogHead


def head_of(offset):
    return LogHead(3, offset, 17, 0, 640, 0)


def test_readers_see_what_was_published_last(tmp_path):
    writer = HeadFile(tmp_path, writable=True)
    assert writer.peek() is None
    reader = HeadFile(tmp_path)
    for offset in range(5):
        writer.publish(head_of(offset))
        assert reader.read() == head_of(offset)


def test_a_new_writer_goes_on_counting(tmp_path):
    HeadFile(tmp_path, writable=True).publish(head_of(1))
    second = HeadFile(tmp_path, writable=True)
    assert second.peek() == head_of(1)
    second.publish(head_of(2))
    assert HeadFile(tmp_path).read() == head_of(2)


@pytest.mark.parametrize("byte", [0, 8, 20, 60, 65])
def test_a_damaged_slot_gives_way_to_the_other(tmp_path, byte):
    writer = HeadFile(tmp_path, writable=True)
    writer.publish(head_of(1))
    writer.publish(head_of(2))
    data = bytearray(writer.path.read_bytes())
    newest = max(SLOTS, key=lambda at: data[at + 8])
    data[newest + byte] ^= 0x10
    writer.path.write_bytes(data)
    assert HeadFile(tmp_path).read() == head_of(1)


def test_two_damaged_slots_are_said(tmp_path):
    writer = HeadFile(tmp_path, writable=True)
    with pytest.raises(LogCorrupt, match="head: both slots"):
        HeadFile(tmp_path).read()
    writer.path.write_bytes(b"short")
    with pytest.raises(LogCorrupt, match="shorter"):
        HeadFile(tmp_path)
