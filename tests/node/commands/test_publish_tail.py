import json
import socket

import jwt
import pytest
from tests.node.test_run import APP
from tests.support.certificate import certificate
from tests.support.node_process import NodeProcess

from edgewise.errors import BadEvent, SetupError
from edgewise.node.commands.publish_tail import publish, tail


def test_what_hands_publish_hands_can_follow(tmp_path):
    (tmp_path / "app.siddhi").write_text(APP)
    node = NodeProcess(
        *("run", tmp_path / "app.siddhi", "--data", tmp_path / "data"),
        *("--engine", "embedded", "--http-port", "0", "--edge-port", "0"),
    )
    try:
        lines = [json.dumps({"k": "a", "v": v}).encode() + b"\n" for v in range(5)]
        assert publish(node.ingest, "S", [*lines, b"\n"]) == 5
        with pytest.raises(BadEvent, match="'v'"):
            publish(node.ingest, "S", [b'{"k": "a", "v": "x"}'])
        url = node.edge.replace("http:", "ws:") + "/ws"
        for line in tail(url, "counts/+", 100):
            value = json.loads(line)
            if value["value"]["n"] == 5:
                break
        assert value["topic"] == "counts/a"
        assert value["value"]["total"] == 10
    finally:
        node.stop()


def test_a_node_that_is_not_there_is_said():
    with pytest.raises(SetupError, match="is `edgewise run` up"):
        publish("http://127.0.0.1:1", "S", [b"{}"])


def test_hands_with_a_token_send_to_a_door_that_asks_for_one(tmp_path):
    (tmp_path / "app.siddhi").write_text(APP)
    secret = "a secret that is long enough for everyone"
    (tmp_path / "key").write_text(secret)
    cert, key = certificate(tmp_path)
    node = NodeProcess(
        *("run", tmp_path / "app.siddhi", "--data", tmp_path / "data"),
        *("--engine", "embedded", "--http-port", "0", "--edge-port", "0"),
        *("--jwt-key", tmp_path / "key", "--tls-cert", cert, "--tls-key", key),
    )
    try:
        assert node.ingest.startswith("https:")
        event = [b'{"k": "a", "v": 1}']
        with pytest.raises(BadEvent, match="unauthenticated"):
            publish(node.ingest, "S", event, ca=cert)
        token = jwt.encode(
            {"sub": "me", "exp": 4_000_000_000, "ingest": ["S"]}, secret, algorithm="HS256"
        )
        assert publish(node.ingest, "S", event, token, cert) == 1
    finally:
        node.stop()


def test_tail_on_a_port_where_nothing_listens_says_so():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and does not listen
        url = f"ws://127.0.0.1:{taken.getsockname()[1]}/ws"
        with pytest.raises(SetupError, match=r"no node answers at ws://.*is `edgewise run` up"):
            next(tail(url, "a/#"))
