from pathlib import Path

import pytest

from edgewise.errors import SetupError
from edgewise.node.config import NodeConfig
from edgewise.node.pages import DEMO, add_page

CONFIG = NodeConfig(app=Path("app.siddhi"), data=Path("data"))


@pytest.mark.parametrize("page", ["wall", DEMO])
def test_our_pages_are_found(page):
    served = dict(add_page(CONFIG, page).assets)
    assert (served["/"] / "index.html").is_file()
    assert (served["/js/"] / "edgewise.js").is_file()
    assert (served["/parts/"] / "style.css").is_file()


def test_a_page_of_ones_own_takes_the_root_and_keeps_the_client(tmp_path):
    (tmp_path / "index.html").write_text("mine")
    config = NodeConfig(app=Path("app.siddhi"), data=Path("data"), web=tmp_path)
    served = dict(add_page(config).assets)
    assert served["/"] == tmp_path
    assert (served["/js/"] / "edgewise.js").is_file()


def test_a_directory_without_a_page_is_refused(tmp_path):
    config = NodeConfig(app=Path("app.siddhi"), data=Path("data"), web=tmp_path)
    with pytest.raises(SetupError, match=r"there is no .*index\.html"):
        add_page(config)
