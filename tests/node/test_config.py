import time

import jwt
import pytest

from edgewise.errors import SetupError
from edgewise.node.config import NodeConfig

SECRET = "a secret that is long enough for everyone\n"


def test_a_door_off_loopback_needs_a_key(tmp_path):
    config = NodeConfig(app=tmp_path, data=tmp_path, host="0.0.0.0")
    with pytest.raises(SetupError, match="--edge-host"):
        config.validate()
    (tmp_path / "key").write_text(SECRET)
    away = NodeConfig(tmp_path, tmp_path, host="0.0.0.0", jwt_key=tmp_path / "key")
    away.validate()
    assert away.edge_config().verifier is not None
    assert away.door_config([]).authority("", "S").status == 401
    with pytest.raises(SetupError, match="cannot read"):
        NodeConfig(tmp_path, tmp_path, jwt_key=tmp_path / "none").edge_config()


def test_who_was_revoked_is_known_to_the_edge_and_to_the_door(tmp_path):
    names = tmp_path / "revoked"
    with pytest.raises(SetupError, match="--jwt-key"):
        NodeConfig(tmp_path, tmp_path, revoked=names).validate()
    (tmp_path / "key").write_text(SECRET)
    config = NodeConfig(tmp_path, tmp_path, jwt_key=tmp_path / "key", revoked=names)
    with pytest.raises(SetupError, match="cannot read"):
        config.edge_config()
    names.write_text("wall\n")
    assert config.edge_config().revoked.names == {"wall"}
    claims = {"sub": "wall", "exp": time.time() + 60, "ingest": ["S"]}
    token = jwt.encode(claims, SECRET.strip(), algorithm="HS256")
    door = config.door_config([]).authority
    assert door(token, "S").status == 401
    names.write_text("")
    assert door(token, "S") is None
    names.write_text("wall\n")
    assert door(token, "S").status == 401
