"""Real brokers as child processes on free ports, for integration tests."""

import shutil
import socket
import subprocess
import time
from contextlib import contextmanager


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for_port(port, process, timeout_s=60):
    end = time.monotonic() + timeout_s
    while time.monotonic() < end:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            assert process.poll() is None, "the broker ended"
            time.sleep(0.05)
        else:
            return
    raise TimeoutError(f"nothing listens on {port}")


class Mosquitto:
    def __init__(self, directory, *extra):
        self.port = free_port()
        self._config = directory / "mosquitto.conf"
        lines = [
            f"listener {self.port} 127.0.0.1",
            "allow_anonymous true",
            "persistence true",
            f"persistence_location {directory}/",
            "user root",
            *extra,
        ]
        self._config.write_text("\n".join(lines) + "\n")
        self._process = None

    def start(self):
        program = shutil.which("mosquitto") or "/usr/sbin/mosquitto"
        self._process = subprocess.Popen(
            [program, "-c", self._config], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        wait_for_port(self.port, self._process)

    def stop(self):
        if self._process is not None:
            self._process.terminate()
            self._process.wait(10)
            self._process = None


@contextmanager
def mosquitto(directory, *extra):
    broker = Mosquitto(directory, *extra)
    broker.start()
    try:
        yield broker
    finally:
        broker.stop()
