from edgewise.plan.streamcalls import STREAM_FUNCTIONS


def test_as_many_coordinates_come_out_as_went_in():
    polar = STREAM_FUNCTIONS["pol2cart"]
    assert [a.name for a in polar.adds(2)] == ["x", "y"]
    assert [a.name for a in polar.adds(3)] == ["x", "y", "z"]
