"""What integration tests may ask for: a browser, and processes that leave nothing behind."""

import pytest
from tests.support.browser import Browser


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    """One Chromium for all tests; each opens its own pages."""
    with Browser.start(tmp_path_factory.mktemp("chromium")) as started:
        yield started
