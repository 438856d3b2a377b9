from edgewise.event.types import AttrType
from edgewise.plan.exprs import Const
from edgewise.plan.streamcalls import STREAM_FUNCTIONS


def test_as_many_coordinates_come_out_as_went_in():
    polar = STREAM_FUNCTIONS["pol2cart"]
    one = Const(AttrType.DOUBLE, 1.0)
    assert [a.name for a in polar.adds((one, one))] == ["x", "y"]
    assert [a.name for a in polar.adds((one, one, one))] == ["x", "y", "z"]


def test_a_variadic_processor_takes_any_number_of_its_last_argument():
    tokenize = STREAM_FUNCTIONS["list:tokenize"]
    assert tokenize.fits((AttrType.OBJECT,) * 3)
    assert not tokenize.fits((AttrType.OBJECT, AttrType.INT))
    assert not tokenize.fits(())
