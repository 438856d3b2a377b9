import json

from edgewise.node import edge


def test_what_it_cannot_do_is_told_to_the_node(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(edge, "end_with_parent", lambda: None)
    monkeypatch.setattr(edge.signal, "signal", lambda *_: None)
    words = [str(tmp_path / "none.siddhi"), "--data", str(tmp_path), "--host", "127.0.0.1"]
    words += ["--port", "1", "--directory", str(tmp_path), "--number", "1"]
    assert edge.main(words) == 2
    assert "none.siddhi" in json.loads(capsys.readouterr().out)["failed"]
