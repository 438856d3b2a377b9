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


@given(st.lists(st.tuples(st.integers(0, 5), st.sampled_from("1234-")), max_size=40))
def test_behind_a_trusted_proxy_who_asked_last_is_counted(deeds):
    limits = {"connections_max": 5, "address_connections_max": 2}
    arrivals, here = Arrivals(EdgeConfig(trusted_proxies=("10.0.0.0/8",), **limits)), {}
    for who, last in deeds:
        if who not in here:
            assert bool(arrivals.joined(who, "10.0.0.1")) == (len(here) >= 5)
            here[who] = "10.0.0.1"
        elif last == "-":
            arrivals.left(who)
            del here[who]
        else:
            here[who] = f"192.0.2.{last}"
            refused = arrivals.asks(who, "10.0.0.1", {"x-forwarded-for": here[who]})
            assert bool(refused) == ([*here.values()].count(here[who]) > 2)
        assert arrivals._by_address == {a: [*here.values()].count(a) for a in here.values()}
        assert len(arrivals) == len(here)


def test_nobody_else_is_believed():
    forged = {"x-forwarded-for": "192.0.2.1"}
    for trusted in ((), ("10.0.0.0/8",)):
        arrivals = Arrivals(EdgeConfig(trusted_proxies=trusted, address_connections_max=1))
        for who in "ab":
            refused = arrivals.joined(who, "127.0.0.1")
            arrivals.asks(who, "127.0.0.1", forged)
        assert refused == "too many connections from 127.0.0.1"
        assert arrivals._by_address == {"127.0.0.1": 2}


def test_a_proxy_that_says_nothing_counts_as_one_client():
    config = EdgeConfig(trusted_proxies=("10.0.0.1",), address_connections_max=1)
    arrivals = Arrivals(config)
    refused = [
        arrivals.joined(who, "10.0.0.1") or arrivals.asks(who, "10.0.0.1", {}) for who in "ab"
    ]
    assert refused == ["", "too many connections from 10.0.0.1"]
    assert not arrivals.asks("c", "10.0.0.1", {})  # gone meanwhile


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
