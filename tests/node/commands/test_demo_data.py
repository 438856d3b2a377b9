from collections import Counter

from edgewise.node.commands.demo_data import (
    BATCHES_PER_S,
    EVENTS_PER_S,
    SPEED,
    EventSender,
    LoginGenerator,
    traffic_level,
)

LASTING = 1 / BATCHES_PER_S


def play(seed, seconds):
    day = LoginGenerator(seed, 0)
    return [
        e for tick in range(seconds * BATCHES_PER_S) for e in day.logins(tick * LASTING, LASTING)
    ]


def test_the_same_seed_plays_the_same_day():
    assert play(7, 5) == play(7, 5)
    assert play(7, 5) != play(8, 5)


def test_time_only_moves_forward_and_sixty_times_as_fast():
    times = [ts for ts, _, _ in play(1, 10)]
    assert times == sorted(times)
    assert abs(times[-1] - 10 * SPEED * 1000) < SPEED * 1000


def test_there_are_about_two_thousand_logins_a_second():
    assert 0.8 < len(play(1, 10)) / 10 / EVENTS_PER_S < 1.2
    day = [traffic_level(s) for s in range(24 * 60)]
    assert abs(sum(day) / len(day) - 1) < 0.01


def test_only_bursts_reach_more_than_ten_logins_in_ten_minutes():
    events = play(1, 60)
    recent, alerted = [], set()
    count = Counter()
    for ts, ip, _ in events:
        recent.append((ts, ip))
        count[ip] += 1
        while recent[0][0] <= ts - 600_000:
            count[recent.pop(0)[1]] -= 1
        if count[ip] > 10:
            alerted.add(ip)
    assert 3 <= len(alerted) <= 20
    assert not [ip for ip in alerted if ip.startswith("10.")]


def test_a_closed_door_is_tried_again_later():
    assert not EventSender("http://127.0.0.1:1/streams/s").send(b"{}")
