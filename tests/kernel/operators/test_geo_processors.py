import pytest
from tests.support.kernel_runs import data

HEAD = "define stream A (id string, x double, y double);"
FENCE = "{'type':'Polygon','coordinates':[[[0,0],[0,2],[2,2],[2,0],[0,0]]]}"


def played(call, select, *positions):
    events = [("A", 1000 + i, *position) for i, position in enumerate(positions)]
    return data(f"from A#geo:{call} select {select} insert into O;", events, HEAD)


def test_an_event_passes_when_its_thing_crosses_the_fence():
    path = [("a", 5.0, 5.0), ("a", 1.0, 1.0), ("a", 1.5, 1.0), ("b", 1.0, 1.0), ("a", 5.0, 1.0)]
    found = played(f'crosses(id, x, y, "{FENCE}")', "id, crosses", *path)
    assert found == [("a", True), ("b", True), ("a", False)]


def test_a_thing_that_stops_and_moves_on_is_told():
    path = [("a", 0.0, 0.0), ("a", 0.0, 0.0), ("a", 0.0, 0.0), ("a", 5.0, 0.0)]
    assert played("stationary(id, x, y, 1000.0)", "stationary", *path) == [(True,), (False,)]


def test_things_that_come_near_are_told_of_each_other():
    path = [("a", 0.0, 0.0), ("b", 5.0, 0.0), ("b", 0.0, 0.0), ("b", 5.0, 0.0)]
    found = played("proximity(id, x, y, 1000.0)", "id, proximityWith, inCloseProximity", *path)
    assert found == [("b", "a", True), ("b", "a", False)]


def test_the_closest_points_are_added():
    added = (
        "closestPointOf1From2Latitude, closestPointOf1From2Longitude, closestPointOf2From1Latitude"
    )
    assert played(f'closestPoints(x, y, "{FENCE}")', added, ("a", 5.0, 1.0)) == [(5.0, 1.0, 2.0)]


def test_the_mean_of_sensors_is_added():
    head = "define stream A (id string, x double, y double, p string, s string, w double, t long);"
    events = [
        ("A", 1000, "a", 10.0, 20.0, "ENTER", "s1", 1.0, 1000),
        ("A", 1001, "a", 10.0, 30.0, "RANGE", "s2", 1.0, 2000),
        ("A", 1002, "a", 10.0, 20.0, "EXIT", "s1", 1.0, 3000),
        ("A", 1003, "a", 10.0, 30.0, "EXIT", "s2", 1.0, 4000),
    ]
    query = (
        "from A#geo:locationApproximate(id, x, y, p, s, w, t) "
        "select averagedLongitude, averageExist insert into O;"
    )
    found = data(query, events, head)
    assert [exist for _, exist in found] == [True, True, True, False]
    assert [lon for lon, _ in found] == pytest.approx([20.0, 25.0, 30.0, 30.0])


def test_a_null_drops_the_event():
    assert not played("stationary(id, x, y, 1000.0)", "stationary", ("a", None, 0.0))
