import argparse

import pytest

from edgewise.cli.options import HelpFormatter


@pytest.mark.parametrize(
    ("default", "shown"), [(None, "none"), ("", "none"), ([], "none"), (False, "off"), (0, "0")]
)
def test_an_empty_default_is_shown_as_a_word(default, shown):
    parser = argparse.ArgumentParser(formatter_class=HelpFormatter)
    parser.add_argument("--x", default=default, help="a letter")
    assert f"a letter (default: {shown})" in parser.format_help()
