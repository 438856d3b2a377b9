"""`edgewise` as a person runs it: a process with a terminal's worth of output, and what it left.

Everything it starts inherits a mark in its environment, so that a process left behind is found
whatever group or session it moved to.
"""

import http.client
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

ROOT = Path(__file__).parent.parent.parent
MARK = "EDGEWISE_TEST_RUN"
LINES_MAX = 10_000
POLL_S = 0.05


class Program:
    def __init__(self, process: subprocess.Popen, mark: str) -> None:
        self.process = process
        self._mark = f"{MARK}={mark}".encode()
        self._lines: list[str] = []
        self._more = threading.Condition()
        self._ended = False
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @classmethod
    @contextmanager
    def start(cls, *arguments: str, home: Path, before: tuple[str, ...] = ()):
        """`BEFORE edgewise ARGUMENTS` with an empty home, working and temporary directory."""
        home.mkdir(parents=True, exist_ok=True)
        mark = f"{os.getpid()}-{home}"
        places = {"HOME": str(home), "TMPDIR": str(home), MARK: mark}
        with subprocess.Popen(
            [*before, sys.executable, "-m", "edgewise", *arguments],
            cwd=home,
            env={**os.environ, **places, "PYTHONPATH": str(ROOT / "src")},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,  # as a terminal does: Ctrl-C reaches this group, not the tests
        ) as process:
            program = cls(process, mark)
            try:
                yield program
            finally:
                process.kill()
                for pid in program.alive():
                    with suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                program._reader.join()

    @property
    def said(self) -> str:
        with self._more:
            return "".join(self._lines)

    def wait_for_line(self, pattern: str, timeout_s: float) -> re.Match[str]:
        """The first line, said already or still to come, that has `pattern` in it."""
        deadline_s = time.monotonic() + timeout_s
        looked = 0
        with self._more:
            while True:
                for line in self._lines[looked:]:
                    if found := re.search(pattern, line):
                        return found
                looked = len(self._lines)
                left_s = deadline_s - time.monotonic()
                if self._ended or left_s <= 0:
                    why = "it ended" if self._ended else f"not within {timeout_s} s"
                    raise AssertionError(f"{why}: {pattern!r}; it said:\n{''.join(self._lines)}")
                self._more.wait(left_s)

    def ctrl_c(self) -> None:
        os.killpg(self.process.pid, signal.SIGINT)

    def alive(self) -> list[int]:
        """Processes that carry our mark; zombies have no environment and do not count."""
        return [int(p.parent.name) for p in Path("/proc").glob("[0-9]*/environ") if self._ours(p)]

    def all_gone_after_s(self, timeout_s: float) -> float:
        """How long it took until no process was left; an AssertionError names those that stay."""
        began_s = time.monotonic()
        try:
            until(lambda: self.process.poll() is not None and not self.alive(), timeout_s)
        except TimeoutError as error:
            names = {pid: command_of(pid) for pid in self.alive()}
            raise AssertionError(f"{error}: {names}; it said:\n{self.said}") from None
        return time.monotonic() - began_s

    def _ours(self, environ: Path) -> bool:
        try:
            return self._mark in environ.read_bytes().split(b"\0")
        except OSError:
            return False  # gone between listing and reading, or not our user's

    def _read(self) -> None:
        for line in self.process.stdout:
            with self._more:
                self._lines.append(line)
                del self._lines[:-LINES_MAX]
                self._more.notify_all()
        with self._more:
            self._ended = True
            self._more.notify_all()


def until(condition: Callable[[], bool], timeout_s: float) -> None:
    """Look again and again: for what other processes do and nobody announces."""
    deadline_s = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline_s:
            raise TimeoutError(f"not within {timeout_s} s")
        time.sleep(POLL_S)


def command_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()[:200]
    except OSError:
        return "gone"


def request(method: str, url: str, body: bytes | None = None) -> tuple[int, bytes]:
    address = urlsplit(url)
    connection = http.client.HTTPConnection(address.hostname, address.port, timeout=30)
    try:
        headers = {"Content-Type": "application/json"} if body is not None else {}
        connection.request(method, address.path, body, headers)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()
