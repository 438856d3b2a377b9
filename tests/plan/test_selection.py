import dataclasses

import pytest

from edgewise.plan.selection import Select


def test_a_selection_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Select(()).limit = 1
