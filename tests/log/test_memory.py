import pytest

from edgewise.errors import LogError
from edgewise.log.laws import SCHEMA, make_rows, read_all
from edgewise.log.memory import MemoryLog


def test_a_log_that_nobody_wrote_is_not_there():
    with pytest.raises(LogError, match="there is no log here"):
        MemoryLog().reader()


def test_what_was_read_does_not_change_under_the_reader():
    log = MemoryLog()
    writer = log.writer(SCHEMA)
    writer.append(make_rows([1]))
    batches = log.reader().read(0, 1)
    writer.append(make_rows([2]))
    assert [b.rows.num_rows for b in batches] == [1]
    assert read_all(log.reader()).num_rows == 2
    assert writer.last_sequence("p") == -1
