"""The command line as a person types it."""

import json
import subprocess
import sys

import pytest

from edgewise.cli import main

APP = """define stream S (k string, v int);
from S[v > 1] select k, v insert into O;
"""


@pytest.fixture
def app(tmp_path):
    path = tmp_path / "app.siddhi"
    path.write_text(APP)
    return path


def test_help_names_every_command(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["--help"])
    assert stop.value.code == 0
    said = capsys.readouterr().out
    for command in (
        "run",
        "demo",
        "replay",
        "check",
        "explain",
        "fmt",
        "publish",
        "tail",
        "bench",
    ):
        assert command in said


def test_check_says_ok(app, capsys):
    assert main(["check", str(app)]) == 0
    assert capsys.readouterr().out == f"{app}: ok, 2 streams, 1 queries\n"


def test_a_malformed_app_is_file_line_column_text_and_code_two(app, capsys):
    app.write_text("define stream S (k string);\nfrom S[k >] select k insert into O;\n")
    assert main(["check", str(app)]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"{app}:2:")
    assert "from S[k >] select k insert into O;" in said
    assert "^" in said
    assert "Traceback" not in said


def test_check_never_starts_spark_or_arrow(app):
    app.write_text("@source(type='http') @sink(type='topic', path='s/{k}')\n" + APP)
    code = (
        "import sys; from edgewise.cli import main; code = main(['check', sys.argv[1]]);"
        "heavy = {'pyspark', 'pyarrow', 'numpy', 'pandas'} & set(sys.modules);"
        "sys.exit(f'imported {heavy}' if heavy else code)"
    )
    found = subprocess.run(
        [sys.executable, "-c", code, str(app)], capture_output=True, check=False
    )
    assert found.returncode == 0, found.stderr


def test_replay_prints_rows_as_json_lines(app, tmp_path, capfdbinary):
    events = tmp_path / "events"
    events.write_text('{"stream": "S", "ts": 1, "data": ["a", 2]}\n{"ts": 9}\n')
    assert main(["replay", str(app), "--events", str(events)]) == 0
    [line] = capfdbinary.readouterr().out.splitlines()
    assert json.loads(line) == {"stream": "O", "ts": 1, "data": ["a", 2], "kind": "current"}


def test_replay_names_a_bad_line(app, tmp_path, capsys):
    events = tmp_path / "events"
    events.write_text('{"stream": "S", "ts": 1, "data": ["a", "b"]}\n')
    assert main(["replay", str(app), "--events", str(events)]) == 2
    assert "field 'v'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--events", "-", "--from", "5"], "--from and --to are for --data"),
        (["--events", "-", "--stream", "Nope"], "no such stream; it writes O"),
        (["--data", "d", "--from", "2026-02-01", "--to", "2026-01-01"], "lies before --from"),
        (["--data", "d"], "there is no log"),
    ],
)
def test_replay_leaves_nothing_out_without_a_word(app, capsys, more, said):
    assert main(["replay", str(app), *more]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("face", ["text", "json", "svg"])
def test_explain_has_three_faces(app, capsys, face):
    assert main(["explain", str(app), "--format", face]) == 0
    assert "query1" in capsys.readouterr().out


def test_explain_prints_the_generated_code(app, capsys):
    assert main(["explain", str(app), "--code"]) == 0
    said = capsys.readouterr().out
    compile(said, "kernel", "exec")


def test_fmt_checks_and_writes(app, capsys):
    app.write_text(APP.replace(" select", "\n\n   select"))
    assert main(["fmt", str(app), "--check"]) == 1
    assert main(["fmt", str(app), "--write"]) == 0
    assert main(["fmt", str(app), "--check"]) == 0
    assert "select" in app.read_text()


def test_a_missing_file_is_one_sentence(tmp_path, capsys):
    assert main(["replay", str(tmp_path / "none"), "--events", "-"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_log_has_a_help_of_its_own(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["log", "--help"])
    assert ended.value.code == 0
    said = capsys.readouterr().out
    assert all(word in said for word in ("list", "inspect", "verify", "copy", "tail", "archive"))


def test_log_commands_reach_the_log(tmp_path, capsys):
    from edgewise.event.schema import Schema
    from edgewise.log.segment_writer import SegmentWriter

    SegmentWriter.open(tmp_path / "S", Schema.of("S", k="string")).close()
    assert main(["log", "inspect", str(tmp_path / "S")]) == 0
    assert "k" in capsys.readouterr().out
