import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.kernel_runs import data

from edgewise.kernel.operators import clusters

HEAD = "define stream A (x double, y double);"
NEAR = [(0.0, 0.0), (10.0, 10.0), (0.2, 0.0), (9.8, 10.0), (0.0, 0.1), (10.0, 9.9)] * 5


def played(call):
    query = (
        f"from A#streamingml:{call} select euclideanDistanceToClosestCentroid as d, "
        "closestCentroidCoordinate1 as a, closestCentroidCoordinate2 as b insert into O;"
    )
    return data(query, [("A", 1000 + i, *point) for i, point in enumerate(NEAR)], HEAD)


@pytest.mark.parametrize(
    "call", ["kMeansIncremental(2, 0.1, x, y)", "kMeansMiniBatch(2, 0.2, 10, 4, x, y)"]
)
def test_events_are_assigned_to_the_cluster_they_are_near_to(call):
    found = played(call)
    assert found[0] == (None, None, None)
    assert all(distance < 2 for distance, _, _ in found[-6:])
    assert {round(a) for _, a, _ in found[-6:]} == {0, 10}


@given(
    st.lists(st.tuples(st.floats(-9, 9), st.floats(-9, 9)), min_size=2, max_size=20, unique=True)
)
def test_a_step_never_moves_points_away_from_their_centroids(points):
    def spread(centroids):
        return sum(min(clusters.math.dist(c, p) ** 2 for c in centroids) for p in points)

    start = points[:2]
    after, taken = clusters.shift(start, points, 5)
    assert spread(after) <= spread(start) + 0.01
    assert taken <= {0, 1}


def test_the_first_different_points_are_the_first_centroids():
    assert clusters.add_centroids([], [(1.0,), (1.0,), (2.0,), (3.0,)], 2) == [(1.0,), (2.0,)]
