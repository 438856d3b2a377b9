"""The site builds without a warning, and its search knows the pages."""

import subprocess
import sys

from tests.support.pages import DOCS, ROOT

BUILD_S = 120


def test_the_site_builds_without_a_warning(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", "-b", "html", "-W", "--keep-going", "-q", DOCS, tmp_path],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=BUILD_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "watermark" in (tmp_path / "searchindex.js").read_text()
