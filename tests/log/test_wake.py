import mmap
import threading
import time

import pytest

from edgewise.log.wake import Bell


@pytest.fixture(params=[True, False], ids=["futex", "poll"])
def bell(request):
    return Bell(mmap.mmap(-1, 4096), 64, futex=request.param)


def test_waiting_for_a_number_that_is_gone_ends_at_once(bell):
    seen = bell.count()
    bell.ring()
    start = time.monotonic()
    bell.wait(seen, 10)
    assert time.monotonic() - start < 5


def test_a_timeout_ends_the_wait(bell):
    start = time.monotonic()
    bell.wait(bell.count(), 0.02)
    bell.wait(bell.count(), -1)
    assert time.monotonic() - start < 5


def test_ringing_wakes_everyone(bell):
    seen = bell.count()
    woken = threading.Barrier(4)

    def sleeper():
        while bell.count() == seen:
            bell.wait(seen, 10)
        woken.wait(10)

    threads = [threading.Thread(target=sleeper) for _ in range(3)]
    for thread in threads:
        thread.start()
    bell.ring()
    woken.wait(10)
    for thread in threads:
        thread.join()
