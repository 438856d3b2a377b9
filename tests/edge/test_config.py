import pytest

from edgewise.edge.config import EdgeConfig
from edgewise.errors import SetupError


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"sessions_max": 0}, "sessions_max"),
        ({"assets": (("x", None),)}, "begin with '/'"),
        ({"trusted_proxies": ("nginx",)}, "trusted proxy"),
        ({"ping_ms": 100, "idle_ms": 100}, "idle_ms"),
    ],
)
def test_a_wrong_value_is_named(change, word):
    with pytest.raises(SetupError, match=word):
        EdgeConfig(**change).validate()


def test_an_asset_directory_must_exist(tmp_path):
    EdgeConfig(assets=(("/", tmp_path),)).validate()
    with pytest.raises(SetupError, match="no directory"):
        EdgeConfig(assets=(("/", tmp_path / "x"),)).validate()
