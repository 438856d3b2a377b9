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
