"""The browser itself: if these fail, it is not our page."""

import socket
from urllib.parse import quote

import pytest
from tests.support.browser import PageError

pytestmark = pytest.mark.integration
PNG = b"\x89PNG\r\n\x1a\n"


def page_of(body: str) -> str:
    return "data:text/html," + quote(f"<!doctype html><title>t</title><body>{body}")


def test_a_condition_is_awaited_and_its_value_given_back(browser):
    page = browser.open(
        page_of("<p id=p>no</p><script>setTimeout(() => p.textContent = 'yes', 200)</script>")
    )
    shown = "document.getElementById('p').textContent"
    assert page.evaluate(shown) in {"no", "yes"}
    assert page.wait_for(f"{shown} === 'yes' && {shown}", timeout_s=20) == "yes"


def test_a_condition_that_stays_false_shows_the_page(browser):
    page = browser.open(page_of("<p>what people see</p>"))
    with pytest.raises(PageError, match=r"not within 0\.1 s: false\n(?s:.*)what people see"):
        page.wait_for("false", timeout_s=0.1)


def test_exceptions_and_console_errors_are_complaints(browser):
    page = browser.open(page_of("<script>console.error('one'); throw new Error('two')</script>"))
    page.evaluate("0")
    assert page.complaints[0] == "one"
    assert page.complaints[1].startswith("Error: two")
    with pytest.raises(PageError, match="nothing is not defined"):
        page.evaluate("nothing")


def test_a_screenshot_is_a_picture(browser, tmp_path):
    page = browser.open(page_of("<h1>picture</h1>"))
    page.screenshot(tmp_path / "deep" / "page.png")
    assert (tmp_path / "deep" / "page.png").read_bytes().startswith(PNG)


def test_an_address_that_nobody_serves_is_said(browser):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(PageError, match="ERR_CONNECTION_REFUSED"):
        browser.open(f"http://127.0.0.1:{port}/")
