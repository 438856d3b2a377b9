"""A real headless Chromium, driven over the DevTools protocol; as much of it as the tests need.

    with Browser.start(profile_dir) as browser:
        page = browser.open("http://127.0.0.1:8080/")
        page.wait_for("document.title === 'ready'", timeout_s=10)
        page.screenshot(Path("artifacts/page.png"))

Conditions are JavaScript expressions and are polled inside the page, so a test neither sleeps nor
misses a state that lasts for longer than POLL_MS. What the page complained about (exceptions,
console errors, failed requests) is in `page.complaints`.
"""

import base64
import json
import os
import re
import shutil
import signal
import subprocess
import threading
from contextlib import contextmanager, suppress
from pathlib import Path

from websockets.sync.client import ClientConnection, connect

POLL_MS = 50
ANSWER_S_MAX = 30  # on a loaded machine the browser takes its time
MESSAGE_BYTES_MAX = 64 * 1024 * 1024  # a screenshot is one message
COMPLAINTS_MAX = 100
WIDTH, HEIGHT = 1280, 800
FLAGS = (
    "--headless=new",
    "--remote-debugging-port=0",
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-extensions",
    "--disable-sync",
    "--hide-scrollbars",
    "--mute-audio",
)


class PageError(AssertionError):
    """The page threw, or a condition did not come true in time."""


class Browser:
    def __init__(self, connection: ClientConnection) -> None:
        self._connection = connection
        self._count = 0
        self._pages: dict[str, Page] = {}

    @classmethod
    @contextmanager
    def start(cls, profile: Path):
        program = shutil.which("chromium")
        assert program, "no chromium: run scripts/install-integration"
        # Chromium's sandbox refuses root; the pages are our own.
        sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
        with subprocess.Popen(
            [program, *FLAGS, *sandbox, f"--user-data-dir={profile}", "about:blank"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        ) as process:
            # Nobody reads what it says later, and a full pipe would stop it.
            drain = threading.Thread(target=process.stderr.read, daemon=True)
            try:
                address = _devtools_address(process)
                drain.start()
                # No pings: between two calls nobody reads, and events that wait hide the pongs.
                # Nor goodbyes: it answers none, and is killed right after.
                with connect(
                    address,
                    max_size=MESSAGE_BYTES_MAX,
                    compression=None,
                    ping_interval=None,
                    close_timeout=0.1,
                ) as connection:
                    yield cls(connection)
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                if drain.is_alive():
                    drain.join()

    def open(self, url: str) -> "Page":
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        answer = self.call("Target.attachToTarget", targetId=target, flatten=True)
        page = Page(self, answer["sessionId"], target)
        self._pages[answer["sessionId"]] = page
        for domain in ("Page", "Runtime", "Log"):
            page.call(f"{domain}.enable")
        size = {"width": WIDTH, "height": HEIGHT, "deviceScaleFactor": 1, "mobile": False}
        page.call("Emulation.setDeviceMetricsOverride", **size)
        failed = page.call("Page.navigate", url=url).get("errorText")
        if failed:
            raise PageError(f"{url}: {failed}")
        page.wait_for("document.readyState === 'complete'", timeout_s=ANSWER_S_MAX)
        return page

    def call(self, method: str, session: str = "", answer_s: float = ANSWER_S_MAX, **params):
        """One command and its answer; events that come in between go to their pages."""
        self._count += 1
        message = {"id": self._count, "method": method, "params": params}
        self._connection.send(json.dumps(message | ({"sessionId": session} if session else {})))
        while True:
            heard = json.loads(self._connection.recv(timeout=answer_s))
            if heard.get("id") == self._count:
                if "error" in heard:
                    raise PageError(f"{method}: {heard['error']['message']}")
                return heard["result"]
            page = self._pages.get(heard.get("sessionId", ""))
            if page and "method" in heard:
                page.notice(heard["method"], heard["params"])


class Page:
    def __init__(self, browser: Browser, session: str, target: str) -> None:
        self._browser = browser
        self._session = session
        self._target = target
        self.complaints: list[str] = []

    def call(self, method: str, answer_s: float = ANSWER_S_MAX, **params):
        return self._browser.call(method, self._session, answer_s, **params)

    def evaluate(self, expression: str, answer_s: float = ANSWER_S_MAX):
        """The value of a JavaScript expression; a promise is awaited."""
        answer = self.call(
            "Runtime.evaluate",
            answer_s,
            expression=expression,
            awaitPromise=True,
            returnByValue=True,
        )
        if "exceptionDetails" in answer:
            raise PageError(f"{expression}: {_thrown(answer['exceptionDetails'])}")
        return answer["result"].get("value")

    def wait_for(self, condition: str, timeout_s: float):
        """The first true value of `condition`; a PageError with the page's text after that."""
        value = self.evaluate(
            f"""new Promise((resolve, reject) => {{
                const end = performance.now() + {timeout_s * 1000};
                const look = () => {{
                    let value;
                    try {{ value = ({condition}); }} catch (error) {{ return reject(error); }}
                    if (value) resolve(value);
                    else if (performance.now() > end) resolve(null);
                    else setTimeout(look, {POLL_MS});
                }};
                look();
            }})""",
            answer_s=timeout_s + ANSWER_S_MAX,
        )
        if value is None:
            text = self.evaluate("document.body.innerText")
            raise PageError(
                f"not within {timeout_s} s: {condition}\n"
                f"the page complained: {self.complaints}\nthe page shows:\n{text}"
            )
        return value

    def close(self) -> None:
        self._browser.call("Target.closeTarget", targetId=self._target)

    def screenshot(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot")["data"]))

    def notice(self, method: str, params: dict) -> None:
        if len(self.complaints) >= COMPLAINTS_MAX:
            return
        if method == "Runtime.exceptionThrown":
            self.complaints.append(_thrown(params["exceptionDetails"]))
        elif method == "Log.entryAdded" and params["entry"]["level"] == "error":
            entry = params["entry"]
            self.complaints.append(f"{entry['text']} ({entry.get('url', '')})")
        elif method == "Runtime.consoleAPICalled" and params["type"] == "error":
            said = [str(part.get("value", part.get("description"))) for part in params["args"]]
            self.complaints.append(" ".join(said))


def _devtools_address(process: subprocess.Popen) -> str:
    said = []
    for line in process.stderr:
        if found := re.search(r"DevTools listening on (ws://\S+)", line):
            return found.group(1)
        said.append(line)
    raise PageError(f"chromium ended before it listened:\n{''.join(said)}")


def _thrown(details: dict) -> str:
    return details.get("exception", {}).get("description") or details["text"]
