from hypothesis import given
from hypothesis import strategies as st

from edgewise.edge.arrivals import Arrivals
from edgewise.edge.config import EdgeConfig

DEEDS = st.lists(st.tuples(st.integers(0, 9), st.sampled_from("abc")), max_size=40)


@given(DEEDS)
def test_who_comes_is_counted_by_address_until_it_leaves(deeds):
    arrivals, here = Arrivals(EdgeConfig(connections_max=5, address_connections_max=2)), {}
    for who, address in deeds:
        if who in here:
            arrivals.left(who)
            del here[who]
        else:
            refused = arrivals.joined(who, address)
            here[who] = address
            crowded = [*here.values()].count(address) > 2
            assert bool(refused) == (len(here) > 5 or crowded)
            assert not refused or len(here) > 5 or address in refused
        assert set(arrivals) == set(here)
        assert len(arrivals) == len(here)
    for who in here:
        arrivals.left(who)
        arrivals.left(who)
    assert not arrivals._by_address
