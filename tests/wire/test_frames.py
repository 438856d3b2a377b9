import re
from pathlib import Path
from typing import get_args

import pytest

from edgewise.wire import frames

SPEC = (Path(frames.__file__).parent / "SPEC.md").read_text()
ALL = sorted(set(get_args(frames.Frame)), key=lambda f: f.__struct_config__.tag)


def test_numbers_are_dense_and_unique():
    assert [f.__struct_config__.tag for f in ALL] == list(range(1, len(ALL) + 1))


@pytest.mark.parametrize("frame", ALL, ids=lambda f: f.__name__)
def test_the_specification_names_each_frame_with_its_number_and_fields(frame):
    number, title = frame.__struct_config__.tag, frames.frame_name(frame)
    row = re.search(rf"^\| {number} \| {title} \| .*$", SPEC, re.MULTILINE)
    assert row, f"{frame.__name__} is missing in SPEC.md"
    for name in frame.__struct_fields__:
        assert name in row[0], f"{frame.__name__}: {name} is missing in SPEC.md"
