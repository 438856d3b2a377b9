import pytest

from edgewise.cli import main


def test_help_names_the_program(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["--help"])
    assert stop.value.code == 0
    assert "edgewise" in capsys.readouterr().out
