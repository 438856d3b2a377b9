import time

import jwt
import pytest

from edgewise.errors import SetupError
from edgewise.node.config import NodeConfig

SECRET = "a secret that is long enough for everyone\n"


def test_an_ingest_server_off_loopback_needs_a_key(tmp_path):
    config = NodeConfig(app=tmp_path, data=tmp_path, host="0.0.0.0")
    with pytest.raises(SetupError, match="--edge-host"):
        config.validate()
    (tmp_path / "key").write_text(SECRET)
    away = NodeConfig(tmp_path, tmp_path, host="0.0.0.0", jwt_key=tmp_path / "key")
    away.validate()
    assert away.edge_config().verifier is not None
    assert away.ingest_config([]).authorizer("", "S").status == 401
    with pytest.raises(SetupError, match="cannot read"):
        NodeConfig(tmp_path, tmp_path, jwt_key=tmp_path / "none").edge_config()


def test_who_was_revoked_is_known_to_the_edge_and_to_ingest(tmp_path):
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
    authorizer = config.ingest_config([]).authorizer
    assert authorizer(token, "S").status == 401
    names.write_text("")
    assert authorizer(token, "S").name == "wall"
    names.write_text("wall\n")
    assert authorizer(token, "S").status == 401


def test_tokens_of_another_audience_or_issuer_are_refused(tmp_path):
    (tmp_path / "key").write_text(SECRET)
    with pytest.raises(SetupError, match="give --jwt-key"):
        NodeConfig(tmp_path, tmp_path, jwt_audience="edge").validate()
    config = NodeConfig(
        tmp_path,
        tmp_path,
        jwt_key=tmp_path / "key",
        jwt_audience="edge",
        jwt_issuer="https://login.example",
    )
    config.validate()
    authorizer = config.ingest_config([]).authorizer
    claims = {"sub": "wall", "exp": time.time() + 60, "ingest": ["S"]}
    for more, status in (
        ({}, 401),
        ({"aud": "edge"}, 401),
        ({"aud": "other", "iss": "https://login.example"}, 401),
        ({"aud": ["edge", "x"], "iss": "https://login.example"}, None),
    ):
        token = jwt.encode(claims | more, SECRET.strip(), algorithm="HS256")
        refusal = authorizer(token, "S")
        assert getattr(refusal, "status", None) == status, more


def test_ingest_without_a_key_serves_local_hosts_only(tmp_path):
    plain = NodeConfig(tmp_path, tmp_path, origins=("https://good.example",)).ingest_config([])
    assert plain.admits_host("localhost:8006")
    assert plain.admits_host("good.example")
    assert not plain.admits_host("evil.example:8006")
    (tmp_path / "key").write_text(SECRET)
    keyed = NodeConfig(tmp_path, tmp_path, jwt_key=tmp_path / "key").ingest_config([])
    assert keyed.admits_host("evil.example:8006")
