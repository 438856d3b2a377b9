import asyncio

from hypothesis import given
from hypothesis import strategies as st

from edgewise.edge.arrivals import WELCOMES_MAX, Arrivals, Doorstep
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


class Newcomer:
    heard = True

    def listen(self, *, on):
        self.heard = on


@given(st.lists(st.integers(0, 3 * WELCOMES_MAX), max_size=6))
def test_newcomers_are_listened_to_a_few_in_each_turn_and_in_order(crowds):
    async def main():
        doorstep, everybody, before = Doorstep(), [], 0
        for crowd in [*crowds, *[0] * 20]:
            for _ in range(crowd):
                everybody.append(Newcomer())
                doorstep.came(everybody[-1])
            heard = [one.heard for one in everybody]
            assert heard == sorted(heard, reverse=True)
            # Those of this turn, and those who came with them.
            assert sum(heard) - before <= 2 * WELCOMES_MAX
            before = sum(heard)
            await asyncio.sleep(0)
        assert before == len(everybody)
        assert not doorstep._turning

    asyncio.run(main())
