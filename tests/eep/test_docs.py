"""docs/reference/eep.md: its examples run and print what the page says."""

import doctest
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "eep.md"


def test_the_examples_of_the_page_run():
    failed, tried = doctest.testfile(str(PAGE), module_relative=False)
    assert tried > 20
    assert not failed
