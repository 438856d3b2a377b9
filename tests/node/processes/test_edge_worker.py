import io
import json

from edgewise.node.config import NodeConfig
from edgewise.node.processes import edge_worker as edge
from edgewise.node.processes.children import encode_config
from edgewise.node.processes.edge_pool import EdgeWorkerConfig


def test_what_it_cannot_do_is_told_to_the_node(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(edge, "exit_with_parent", lambda: None)
    monkeypatch.setattr(edge.signal, "signal", lambda *_: None)
    node = NodeConfig(tmp_path / "none.siddhi", tmp_path, edge_host="127.0.0.1", edge_port=1)
    line = encode_config(EdgeWorkerConfig(node, tmp_path, 1))
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(line)))
    assert edge.main() == 2
    assert "none.siddhi" in json.loads(capsys.readouterr().out)["failed"]
