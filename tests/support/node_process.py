"""A real node as a process, and a person's hands on it."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

SOURCE = str(Path(__file__).parents[2] / "src")
PATIENCE_S = 60


class NodeProcess:
    def __init__(self, *arguments, files_max=None):
        """`files_max` files and connections may be open at once; None: as in this process."""
        limit = [] if files_max is None else ["prlimit", f"--nofile={files_max}"]
        self.process = subprocess.Popen(
            [*limit, sys.executable, "-m", "edgewise", *map(str, arguments)],
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONPATH": SOURCE},
        )
        self.lines = []
        self._news = threading.Condition()
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def _listen(self):
        with self.process.stderr as stderr:
            for line in stderr:
                with self._news:
                    self.lines.append(line)
                    self._news.notify_all()

    def said(self, pattern):
        """Waits for a line on the terminal; answers the match."""
        deadline = time.monotonic() + PATIENCE_S
        with self._news:
            while True:
                for line in self.lines:
                    if found := re.search(pattern, line):
                        return found
                left = deadline - time.monotonic()
                assert left > 0, f"never said {pattern}:\n{''.join(self.lines)}"
                self._news.wait(left)

    @property
    def ingest(self):
        return self.said(r"ingest +(https?://\S+)/streams/")[1]

    @property
    def edge(self):
        return self.said(r"edge +(http://\S+)/")[1]

    def stop(self, number=signal.SIGINT):
        if self.process.poll() is None:
            self.process.send_signal(number)
        code = self.process.wait(PATIENCE_S)
        self._listener.join(PATIENCE_S)
        return code


def post(url, events):
    body = "\n".join(json.dumps(e) for e in events).encode()
    request = urllib.request.Request(url, body, {"Content-Type": "application/x-ndjson"})
    with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
        return json.load(answer)


def topic(edge, path, wanted):
    """The value of a topic as soon as `wanted` says yes to it."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            with urllib.request.urlopen(f"{edge}/topics/{path}", timeout=PATIENCE_S) as answer:
                found = json.load(answer)
        except urllib.error.HTTPError as missing:
            found = missing.code
        if found != 404 and wanted(found):
            return found
        assert time.monotonic() < deadline, f"{path} is {found}"
        time.sleep(0.05)


def children_of(pid):
    return [int(p) for p in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def alive(pid):
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return False
