from edgewise.event.position import Position


def test_a_later_writer_is_further_on_whatever_its_offset():
    assert Position(1, 100) < Position(2, 0) < Position(2, 1)


def test_people_read_epoch_and_offset():
    assert str(Position(6, 4000)) == "6:4000"
