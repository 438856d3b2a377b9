import pytest
from tests.support.log_locations import SegmentLogSubject

from edgewise.log.laws import LAWS
from edgewise.log.memory import MemoryLog


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
def test_segment_files_keep_the_law(law, tmp_path):
    home = SegmentLogSubject(tmp_path / "log")
    try:
        law(home)
    finally:
        home.close()


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
def test_memory_keeps_the_law(law):
    law(MemoryLog())
