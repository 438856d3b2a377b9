"""Checks of options name the option at fault."""

import pytest

from edgewise.gateway.connector_checks import (
    check_all,
    check_choices,
    check_not_empty,
    check_url,
)
from edgewise.gateway.spec import BadSpec


@pytest.mark.parametrize(
    ("check", "good", "bad"),
    [
        (check_url("tcp"), {"url": "tcp://h:1/c"}, {"url": "http://h"}),
        (check_choices({"url": ("a", "b")}), {"url": "a"}, {"url": "c"}),
        (check_not_empty("url", "place"), {"url": "x"}, {"url": ""}),
    ],
)
def test_each_check_takes_the_good_and_names_the_bad(check, good, bad):
    check_all(check)(good)
    with pytest.raises(BadSpec) as error:
        check_all(check)(bad)
    assert error.value.option == "url"
