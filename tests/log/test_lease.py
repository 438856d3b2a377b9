import dataclasses

import pytest

from edgewise.log.lease import EPOCH_NONE, RATE_MARGIN, LeaseRecord


def test_a_contender_waits_longer_than_a_holder_relies_on_its_lease():
    assert RATE_MARGIN > 1


def test_a_record_of_a_win_does_not_change():
    won = LeaseRecord(EPOCH_NONE + 1, "host:1")
    assert not won.released
    with pytest.raises(dataclasses.FrozenInstanceError):
        won.released = True
