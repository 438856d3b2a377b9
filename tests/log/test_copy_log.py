import io

import pytest

from edgewise.errors import LogError
from edgewise.log import copy_log as copy_module
from edgewise.log.api import LogConfig
from edgewise.log.copy_log import CopyProgress, copy_log
from edgewise.log.laws import SCHEMA, make_rows, read_all
from edgewise.log.memory import MemoryLog


@pytest.fixture
def source():
    log = MemoryLog()
    writer = log.writer(SCHEMA)
    for at in range(0, 100, 4):
        writer.append(make_rows(list(range(at, at + 4))))
    return log.reader()


class Broken(Exception):
    pass


def breaking_after(calls):
    left = [calls]

    def progress(rows, size):
        left[0] -= 1
        if not left[0]:
            raise Broken

    return progress


def test_a_copy_that_is_broken_off_again_and_again_has_every_row_once(source, monkeypatch):
    monkeypatch.setattr(copy_module, "ROWS_MAX", 10)
    target = MemoryLog()
    rounds = 0
    while True:
        writer = target.writer(SCHEMA)
        rounds += 1
        try:
            copy_log(source, writer, "a", progress=breaking_after(2))
        except Broken:
            continue
        finally:
            writer.close()
        break
    assert rounds > 3
    assert read_all(target.reader()).equals(read_all(source))
    assert copy_log(source, target.writer(SCHEMA), "a") == (100, 100)


def test_a_range_is_copied(source):
    target = MemoryLog()
    assert copy_log(source, target.writer(SCHEMA), "a", start=10, end=20) == (10, 20)
    assert read_all(target.reader()).column("_ts").to_pylist() == list(range(10, 20))


def test_a_copy_with_a_hole_is_refused(source):
    writer = MemoryLog().writer(SCHEMA)
    copy_log(source, writer, "a", end=10)
    with pytest.raises(LogError, match="copied up to offset 10, and 10 to 50 are gone"):
        copy_log(source, writer, "a", start=50)
    with pytest.raises(LogError, match="beyond 5"):
        copy_log(source, writer, "a", end=5)


def test_small_batches_become_large_ones(source):
    target = MemoryLog()
    copy_log(source, target.writer(SCHEMA, LogConfig()), "a")
    assert [b.rows.num_rows for b in target.reader().read(0, 100)] == [100]


def test_the_bar_says_how_far_it_is():
    now = [0.0]
    out = io.StringIO()
    bar = CopyProgress(1000, out, now_s=lambda: now[0])
    now[0] = 6.0
    bar.add(250, 30_000_000)
    assert out.getvalue() == (
        "[########                      ]  25% 250 of 1000 events, 5.0 MB/s, 18 s left\n"
    )
    bar.add(750, 0)
    bar.close()
    assert out.getvalue().splitlines()[-1].startswith("[##############################] 100%")
    assert "100%" in CopyProgress(0, out, now_s=lambda: 0.0).format_text()


def test_on_a_terminal_the_bar_stays_on_its_line(monkeypatch):
    out = io.StringIO()
    monkeypatch.setattr(out, "isatty", lambda: True, raising=False)
    now = [0.0]
    bar = CopyProgress(2, out, now_s=lambda: now[0])
    bar.add(1, 1)
    assert not out.getvalue()
    now[0] = 1.0
    bar.add(1, 1)
    bar.close()
    assert out.getvalue().count("\n") == 1
    assert out.getvalue().count("\r") == 2
