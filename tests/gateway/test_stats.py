from edgewise.gateway.stats import APPEND_BUCKETS_S, ConnectorStats, render_prometheus


def test_the_page_follows_the_exposition_format():
    stats = ConnectorStats()
    stats.accepted['log"in'] += 3
    stats.refused["login", "invalid"] += 1
    stats.bytes_in = 77
    for seconds in (0.0001, 0.0005, 0.003, 60.0):
        stats.observe_append(seconds)
    other = ConnectorStats()
    other.duplicates["login"] += 2
    text = render_prometheus({"http": stats, "mqtt to login": other})
    assert text.count("# TYPE edgewise_gateway_events_total counter\n") == 1
    assert (
        'edgewise_gateway_duplicates_total{connector="mqtt to login",stream="login"} 2\n' in text
    )
    assert 'edgewise_gateway_events_total{connector="http",stream="log\\"in"} 3\n' in text
    assert (
        'edgewise_gateway_refused_total{connector="http",stream="login",reason="invalid"} 1\n'
        in text
    )
    assert 'edgewise_gateway_append_seconds_bucket{connector="http",le="0.0005"} 2\n' in text
    assert 'edgewise_gateway_append_seconds_bucket{connector="http",le="5.0"} 3\n' in text
    assert 'edgewise_gateway_append_seconds_bucket{connector="http",le="+Inf"} 4\n' in text
    assert 'edgewise_gateway_append_seconds_count{connector="http"} 4\n' in text
    assert text.count("_bucket") == 2 * (len(APPEND_BUCKETS_S) + 1)
    assert (stats.accepted_total, stats.refused_total) == (3, 1)
