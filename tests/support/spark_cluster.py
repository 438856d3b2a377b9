"""A real Spark cluster for tests: a standalone master, and workers that share no disk and no
network with the driver.

Each worker lives in a network namespace of its own, on a bridge to this machine, and in a mount
namespace in which the directory of the test is empty. Links can be cut, workers killed. It
needs root.
"""

import os
import re
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import pyspark
from tests.support.brokers import free_port

BRIDGE, HOST = "ewbridge", "10.213.77.1"
NETWORK = HOST.rpartition(".")[0]
START_S_MAX = 120
SPARK_HOME = Path(pyspark.__file__).parent


def _ip(*words, check=True):
    done = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)
    assert not check or done.returncode == 0, f"ip {' '.join(words)}: {done.stderr}"


class SparkCluster:
    """`hidden` is the directory that workers do not see."""

    def __init__(self, directory, hidden, workers=2, cores=1):
        assert os.geteuid() == 0, "namespaces need root: run `make test-cluster` as root"
        self.directory, self.hidden = directory, hidden
        self.host, port = HOST, free_port()
        self.url = f"spark://{HOST}:{port}"
        self._remove_links(workers)
        _ip("link", "add", BRIDGE, "type", "bridge")
        _ip("addr", "add", f"{HOST}/24", "dev", BRIDGE)
        _ip("link", "set", BRIDGE, "up")
        self._count, self._cores = workers, cores
        self._master = self._start(
            "master", "org.apache.spark.deploy.master.Master",
            "--host", HOST, "--port", str(port), "--webui-port", "0",
        )  # fmt: skip
        self._await_line("master", "I have been elected leader")
        self._workers = {}
        for number in range(workers):
            self._link(number)
            self.start_worker(number)

    def start_worker(self, number):
        work = self.directory / f"work-{number}"
        work.mkdir(exist_ok=True)
        space = ["ip", "netns", "exec", f"ewns{number}", "unshare", "-m"]
        hide = f'mount -t tmpfs none {self.hidden} && exec "$@"'
        self._workers[number] = self._start(
            f"worker-{number}", "org.apache.spark.deploy.worker.Worker",
            "--host", self.address_of(number), "--webui-port", "0", "--cores", str(self._cores),
            "--memory", "1g", "--work-dir", str(work), self.url,
            before=[*space, "sh", "-c", hide, "sh"],
        )  # fmt: skip
        self._await_line(f"worker-{number}", "Successfully registered with master")

    def address_of(self, number):
        return f"{NETWORK}.{number + 2}"

    def kill_worker(self, number):
        """With its executors and their Python workers."""
        os.killpg(self._workers[number].pid, signal.SIGKILL)
        self._workers[number].wait()

    def cut(self, number):
        """Nothing passes between this worker and the rest, and nobody is told."""
        _ip("link", "set", f"ewlink{number}", "down")

    def mend(self, number):
        _ip("link", "set", f"ewlink{number}", "up")

    def stop(self):
        for process in (*self._workers.values(), self._master):
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        self._remove_links(self._count)

    def _link(self, number):
        space, outer, inner = f"ewns{number}", f"ewlink{number}", f"ewin{number}"
        _ip("netns", "add", space)
        _ip("link", "add", outer, "type", "veth", "peer", "name", inner)
        _ip("link", "set", outer, "master", BRIDGE, "up")
        _ip("link", "set", inner, "netns", space)
        _ip("-n", space, "addr", "add", f"{self.address_of(number)}/24", "dev", inner)
        _ip("-n", space, "link", "set", inner, "up")
        _ip("-n", space, "link", "set", "lo", "up")
        _ip("-n", space, "route", "add", "default", "via", HOST)  # to this machine's own address

    @staticmethod
    def _remove_links(count):
        for number in range(count):
            _ip("netns", "del", f"ewns{number}", check=False)
            _ip("link", "del", f"ewlink{number}", check=False)
        _ip("link", "del", BRIDGE, check=False)

    def _start(self, name, main, *words, before=()):
        command = [
            *before, "java", "-cp", f"{SPARK_HOME}/jars/*", "-Xmx300m", "-XX:TieredStopAtLevel=1",
            "-XX:+UseSerialGC", main, *words,
        ]  # fmt: skip
        with (self.directory / f"{name}.log").open("wb") as log:
            return subprocess.Popen(
                command,
                stdout=log,
                stderr=log,
                cwd=self.directory,
                start_new_session=True,
                env={**os.environ, "SPARK_HOME": str(SPARK_HOME), "SPARK_SCALA_VERSION": "2.13"},
            )

    def _await_line(self, name, pattern):
        deadline = time.monotonic() + START_S_MAX
        path = self.directory / f"{name}.log"
        while not re.search(pattern, path.read_text(errors="replace")):
            assert time.monotonic() < deadline, path.read_text(errors="replace")
            time.sleep(0.1)
