import asyncio

from hypothesis import given
from hypothesis import strategies as st

from edgewise.edge.config import EdgeConfig
from edgewise.edge.server.admission import ADMITTED_MAX, AdmissionQueue, ConnectionTable

DEEDS = st.lists(st.tuples(st.integers(0, 9), st.sampled_from("abc")), max_size=40)


@given(DEEDS)
def test_who_comes_is_counted_by_address_until_it_leaves(deeds):
    connections, here = (
        ConnectionTable(EdgeConfig(connections_max=5, address_connections_max=2)),
        {},
    )
    for who, address in deeds:
        if who in here:
            connections.left(who)
            del here[who]
        else:
            refused = connections.add_connection(who, address)
            here[who] = address
            crowded = [*here.values()].count(address) > 2
            assert bool(refused) == (len(here) > 5 or crowded)
            assert not refused or len(here) > 5 or address in refused
        assert set(connections) == set(here)
        assert len(connections) == len(here)
    for who in here:
        connections.left(who)
        connections.left(who)
    assert not connections._by_address


@given(st.lists(st.tuples(st.integers(0, 5), st.sampled_from("1234-")), max_size=40))
def test_behind_a_trusted_proxy_who_asked_last_is_counted(deeds):
    limits = {"connections_max": 5, "address_connections_max": 2}
    connections, here = ConnectionTable(EdgeConfig(trusted_proxies=("10.0.0.0/8",), **limits)), {}
    for who, last in deeds:
        if who not in here:
            assert bool(connections.add_connection(who, "10.0.0.1")) == (len(here) >= 5)
            here[who] = "10.0.0.1"
        elif last == "-":
            connections.left(who)
            del here[who]
        else:
            here[who] = f"192.0.2.{last}"
            refused = connections.check_request(who, "10.0.0.1", {"x-forwarded-for": here[who]})
            assert bool(refused) == ([*here.values()].count(here[who]) > 2)
        assert connections._by_address == {a: [*here.values()].count(a) for a in here.values()}
        assert len(connections) == len(here)


def test_nobody_else_is_believed():
    forged = {"x-forwarded-for": "192.0.2.1"}
    for trusted in ((), ("10.0.0.0/8",)):
        connections = ConnectionTable(
            EdgeConfig(trusted_proxies=trusted, address_connections_max=1)
        )
        for who in "ab":
            refused = connections.add_connection(who, "127.0.0.1")
            connections.check_request(who, "127.0.0.1", forged)
        assert refused == "too many connections from 127.0.0.1"
        assert connections._by_address == {"127.0.0.1": 2}


def test_a_proxy_that_says_nothing_counts_as_one_client():
    config = EdgeConfig(trusted_proxies=("10.0.0.1",), address_connections_max=1)
    connections = ConnectionTable(config)
    refused = [
        connections.add_connection(who, "10.0.0.1")
        or connections.check_request(who, "10.0.0.1", {})
        for who in "ab"
    ]
    assert refused == ["", "too many connections from 10.0.0.1"]
    assert not connections.check_request("c", "10.0.0.1", {})  # gone meanwhile


class Newcomer:
    heard = True

    def listen(self, *, on):
        self.heard = on


@given(st.lists(st.integers(0, 3 * ADMITTED_MAX), max_size=6))
def test_newcomers_are_listened_to_a_few_in_each_turn_and_in_order(crowds):
    async def main():
        doorstep, everybody, before = AdmissionQueue(), [], 0
        for crowd in [*crowds, *[0] * 20]:
            for _ in range(crowd):
                everybody.append(Newcomer())
                doorstep.admit(everybody[-1])
            heard = [one.heard for one in everybody]
            assert heard == sorted(heard, reverse=True)
            # Those of this turn, and those who came with them.
            assert sum(heard) - before <= 2 * ADMITTED_MAX
            before = sum(heard)
            await asyncio.sleep(0)
        assert before == len(everybody)
        assert not doorstep._turning

    asyncio.run(main())
