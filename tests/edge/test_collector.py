import gc
import weakref

import pytest

from edgewise.edge.collector import THRESHOLDS, calm


class Knot:
    def __init__(self):
        self.me = self


@pytest.fixture
def _usual():
    before = gc.get_threshold()
    yield
    gc.unfreeze()
    gc.set_threshold(*before)


@pytest.mark.usefixtures("_usual")
def test_what_was_there_is_not_looked_at_again_and_later_knots_are_still_collected():
    calm()
    assert gc.get_freeze_count() > 0
    assert gc.get_threshold() == THRESHOLDS
    gone = weakref.ref(Knot())
    gc.collect()
    assert gone() is None
