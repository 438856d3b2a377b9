import subprocess
import sys

import pytest

from edgewise.errors import AppError, SetupError
from edgewise.node import apps
from edgewise.plan.nodes import Annotation


def test_a_missing_file_is_said_in_one_sentence(tmp_path):
    with pytest.raises(SetupError, match="No such file"):
        apps.load(tmp_path / "none.siddhi")


def test_a_file_that_is_not_text_is_refused(tmp_path):
    (tmp_path / "a.siddhi").write_bytes(b"define stream \xff")
    with pytest.raises(SetupError, match="UTF-8"):
        apps.load(tmp_path / "a.siddhi")


def test_an_error_names_the_file(tmp_path):
    (tmp_path / "a.siddhi").write_text("define strem S (a int);")
    with pytest.raises(AppError, match=r"a\.siddhi:1:8"):
        apps.load(tmp_path / "a.siddhi")


def test_options_have_lower_case_keys_and_no_nameless_values():
    annotation = Annotation("sink", (("Path", "a"), ("", "b")))
    assert apps.options(annotation) == {"path": "a"}


def test_checking_a_broker_loads_no_arrow(tmp_path):
    file = tmp_path / "a.siddhi"
    file.write_text("""
    @source(type='mqtt', url='mqtt://127.0.0.1:1883', topic='a/+', @map(type='json'))
    define stream S (v int);
    @sink(type='mqtt', url='mqtt://127.0.0.1:1883', topic='b')
    define stream O (v int);
    from S insert into O;
    """)
    code = "import sys; from pathlib import Path; from edgewise.node import apps;"
    code += f"apps.load(Path({str(file)!r})); print([m for m in sys.modules if m in "
    code += "('pyarrow', 'numpy', 'pyspark')])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"
