import pytest

from edgewise import eep
from edgewise.errors import SetupError
from edgewise.event.types import NUMERIC, AttrType
from edgewise.plan.declare import aggregate, function, row_of


def test_a_declared_function_is_a_row_and_can_still_be_called():
    @function("my:twice", "number", returns="same")
    def twice(x):
        return 2 * x

    assert twice(4) == 8
    assert row_of(twice) is twice
    assert twice.takes == (frozenset(NUMERIC),)


def test_a_declared_aggregate_stays_what_it_is_and_carries_its_row():
    @aggregate("total", "double", returns="double")
    class Total(eep.Sum):
        pass

    assert eep.tumbling(Total(), 2).push_many([1.0, 2.0]) == [3.0]
    row = row_of(Total)
    assert (row.name, row.returns, row.aggregate) == ("total", AttrType.DOUBLE, True)
    assert isinstance(row.body, Total)


def test_an_instance_is_declared_as_well_and_a_subclass_is_not():
    p90 = aggregate("p90", "number", returns="same")(eep.Percentile(0.9))
    assert row_of(p90).body is p90

    @aggregate("total", "double", returns="double")
    class Total(eep.Sum):
        pass

    class Other(Total):
        pass

    assert row_of(Other) is None
    assert row_of(3) is None


@pytest.mark.parametrize(
    ("declare", "given", "message"),
    [
        (aggregate("p", "number", returns="double"), eep.Percentile, "needs arguments"),
        (aggregate("p", "number", returns="double"), dict, "it has no 'init'"),
    ],
)
def test_what_is_no_aggregate_is_refused(declare, given, message):
    with pytest.raises(SetupError, match=message):
        declare(given)


def test_a_type_that_is_none_is_named():
    with pytest.raises(SetupError, match="takes 'numbre': use one of number, any, "):
        function("my:f", "numbre", returns="same")(abs)
    with pytest.raises(SetupError, match="returns 'none': use 'same' or one of"):
        aggregate("a", "number", returns="none")(eep.Sum)


def test_a_row_of_the_language_without_a_python_body_cannot_be_called():
    from edgewise.plan.functions import FUNCTIONS

    with pytest.raises(TypeError, match="'sum' has no body"):
        FUNCTIONS["sum"](1)
