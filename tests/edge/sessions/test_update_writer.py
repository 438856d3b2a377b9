from tests.edge.sessions.test_outbox import primed

from edgewise.edge.sessions.update_writer import SAMPLE_EVERY, SAMPLES_MAX


def send(bench, count):
    for value in range(count):
        bench.publish("A", {"v": value})
        bench.flush()


def test_one_sample_is_always_on_its_way_and_others_follow_at_intervals():
    bench = primed("A")
    written = bench.outbox.written
    send(bench, 4 * SAMPLE_EVERY)
    numbers = [number for number, _, group in written.acknowledge(10**9) if group == "A"]
    assert numbers[0] == 2  # the first value of a topic is no measure
    assert all(number % SAMPLE_EVERY == 0 for number in numbers[1:])
    assert len(numbers) == 5


def test_a_client_that_acknowledges_nothing_has_a_bounded_number_of_samples():
    bench = primed("A")
    send(bench, (SAMPLES_MAX + 10) * SAMPLE_EVERY)
    assert len([*bench.outbox.written.acknowledge(10**9)]) == SAMPLES_MAX


def test_what_is_counted_is_what_was_sent():
    bench = primed("AB")
    before = bench.outbox.written.bytes
    bench.publish("A", {"v": 1})
    bench.publish("A", {"v": 2})
    sent = bench.outbox.take(10**9, 0)
    written = bench.outbox.written
    assert (written.bytes - before, written.updates) == (sum(map(len, sent)), 3)
    assert written.conflated == 1
