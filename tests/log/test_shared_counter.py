import mmap
import threading
import time

import pytest

from edgewise.log.shared_counter import SharedCounter


@pytest.fixture(params=[True, False], ids=["futex", "poll"])
def changes(request):
    return SharedCounter(mmap.mmap(-1, 4096), 64, futex=request.param)


def test_waiting_for_a_number_that_is_gone_ends_at_once(changes):
    seen = changes.count()
    changes.increment()
    start = time.monotonic()
    changes.wait(seen, 10)
    assert time.monotonic() - start < 5


def test_a_timeout_ends_the_wait(changes):
    start = time.monotonic()
    changes.wait(changes.count(), 0.02)
    changes.wait(changes.count(), -1)
    assert time.monotonic() - start < 5


def test_ringing_wakes_everyone(changes):
    seen = changes.count()
    woken = threading.Barrier(4)

    def sleeper():
        while changes.count() == seen:
            changes.wait(seen, 10)
        woken.wait(10)

    threads = [threading.Thread(target=sleeper) for _ in range(3)]
    for thread in threads:
        thread.start()
    changes.increment()
    woken.wait(10)
    for thread in threads:
        thread.join()
