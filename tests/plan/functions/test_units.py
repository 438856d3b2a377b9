import pytest

from edgewise.plan.functions import FUNCTIONS, units


def test_every_conversion_is_in_the_table():
    assert len(units.FUNCTIONS) == 48
    assert FUNCTIONS["unitconversion:kgToST"] is not FUNCTIONS["unitconversion:kgTost"]


@pytest.mark.parametrize(
    ("name", "value"), [("cmToin", 0.3937007874), ("miTokm", 1.609344), ("hTos", 3600.0)]
)
def test_a_number_is_converted(name, value):
    body = FUNCTIONS[f"unitconversion:{name}"].python
    assert body is not None
    assert body(1) == pytest.approx(value)
