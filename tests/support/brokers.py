"""Real brokers as child processes on free ports, for integration tests."""

import os
import random
import shutil
import signal
import socket
import subprocess
import time
from contextlib import contextmanager, suppress

# Below those that the system hands out: nobody gets one by chance before the broker is up.
PORTS = range(20_000, 30_000)
TRIES_MAX = 100
_dice = random.SystemRandom()  # two runs side by side may have one seed


def free_port():
    for port in _dice.sample(PORTS, TRIES_MAX):
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise AssertionError(f"no free port among {TRIES_MAX}")


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


def certificate(directory):
    """A private authority that vouches for localhost: its certificate and key."""
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj",
         "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout", directory / "key",
         "-out", directory / "cert"],
        check=True, capture_output=True,
    )  # fmt: skip
    return directory / "cert", directory / "key"


def tls_listener(directory):
    """A port of its own, and what a Mosquitto must be told to speak TLS there."""
    cert, key = certificate(directory)
    port = free_port()
    return port, [f"listener {port} 127.0.0.1", f"certfile {cert}", f"keyfile {key}"]


@contextmanager
def mosquitto(directory, *extra):
    broker = Mosquitto(directory, *extra)
    broker.start()
    try:
        yield broker
    finally:
        broker.stop()


class RabbitMq:
    """Starts in seconds; one for a whole test module."""

    def __init__(self, directory):
        self.port = free_port()
        self.url = f"amqp://guest:guest@127.0.0.1:{self.port}/"
        node = f"edgewise{self.port}@localhost"
        (directory / "enabled").write_text("[rabbitmq_amqp1_0].")
        (directory / "rabbit.conf").write_text(
            f"listeners.tcp.1 = 127.0.0.1:{self.port}\ndisk_free_limit.absolute = 1MB\n"
        )
        self._environment = {
            "HOME": str(directory),
            "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
            "RABBITMQ_NODENAME": node,
            "RABBITMQ_CONFIG_FILE": str(directory / "rabbit.conf"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(directory / "enabled"),
            "RABBITMQ_MNESIA_BASE": str(directory / "mnesia"),
            "RABBITMQ_LOG_BASE": str(directory / "log"),
            "RABBITMQ_DIST_PORT": str(free_port()),
            "ERL_EPMD_PORT": str(free_port()),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
        }
        self._program = "/usr/lib/rabbitmq/bin/rabbitmq-server"  # the one on PATH changes the user
        self._process = None

    def start(self):
        # A process group: the script, the virtual machine and its port mapper end together.
        self._process = subprocess.Popen(
            [self._program],
            env=self._environment,
            start_new_session=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        wait_for_port(self.port, self._process, 120)

    def stop(self):
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGTERM)
            self._process.wait(60)
            self._process = None
            subprocess.run(
                ["epmd", "-kill"],
                env=self._environment,
                check=False,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
