from pathlib import Path

from edgewise.node.layout import Layout


def test_every_stream_and_app_has_a_place_of_its_own():
    layout = Layout(Path("d"))
    assert layout.log("a") != layout.log("b")
    assert layout.checkpoint("a") != layout.log("a")
    assert str(layout.scratch).startswith("d")


def test_faults_stay_in_the_data_directory(tmp_path):
    layout = Layout(tmp_path)
    assert layout.place("$faults") == str(tmp_path / "log" / "$faults")
    assert layout.place("!S") == str(tmp_path / "log" / "!S")
