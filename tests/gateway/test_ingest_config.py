import dataclasses

from edgewise.gateway.ingest_config import IngestConfig


def test_every_limit_has_a_default_that_bounds():
    limits = {
        f.name: getattr(IngestConfig(), f.name)
        for f in dataclasses.fields(IngestConfig)
        if f.name.endswith(("_max", "_s"))
    }
    assert len(limits) >= 6
    assert all(limit > 0 for limit in limits.values()), limits
