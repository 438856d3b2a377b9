import re
from pathlib import Path

import pytest

from edgewise.wire import codes
from edgewise.wire.codes import MEANING, ProtocolCode, may_retry

SPEC = Path(codes.__file__).parent / "SPEC.md"


def test_every_code_has_a_meaning():
    assert set(MEANING) == set(ProtocolCode)


def test_the_specification_prints_the_same_table():
    rows = dict(re.findall(r"^\| (\d{4}) \| [A-Z_]+ \| (.+?) \|$", SPEC.read_text(), re.MULTILINE))
    assert {int(k): v for k, v in rows.items()} == {int(c): m for c, m in MEANING.items()}


@pytest.mark.parametrize(
    ("code", "again"), [(3000, True), (3499, True), (3500, False), (3999, False), (1006, True)]
)
def test_the_range_decides_about_retry(code, again):
    assert may_retry(code) is again
