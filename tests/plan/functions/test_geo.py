import pytest

from edgewise.errors import BadEvent
from edgewise.plan.functions import geo

SQUARE = "{'type':'Polygon','coordinates':[[[0,0],[0,2],[2,2],[2,0],[0,0]]]}"
CIRCLE = '{"type":"Point","coordinates":[0,0],"radius":110574.6}'


def test_a_distance_is_along_the_surface():
    assert geo.distance(8.116553, 77.523679, 9.850047, 98.597177) == pytest.approx(
        2_322_119, rel=1e-3
    )
    assert geo.distance(1.0, 1.0, 1.0, 1.0) == 0


@pytest.mark.parametrize(
    ("found", "value"),
    [
        (geo.within(1.0, 1.0, SQUARE), True),
        (geo.within(3.0, 1.0, SQUARE), False),
        (geo.within(0.5, 0.5, CIRCLE), True),
        (geo.within(SQUARE, SQUARE), True),
        (geo.intersects(2.0, 1.0, SQUARE), True),
        (geo.within_distance(3.0, 1.0, SQUARE, 120_000.0), True),
        (geo.within_distance(3.0, 1.0, SQUARE, 100_000.0), False),
    ],
)
def test_points_and_shapes_meet_fences(found, value):
    assert found is value


@pytest.mark.parametrize("fence", ["x", "{}", '{"type":"Point"}', '{"type":"Thing"}'])
def test_what_is_no_geometry_drops_the_event(fence):
    with pytest.raises(BadEvent):
        geo.within(1.0, 1.0, fence)
