"""Real database servers as child processes on free ports, for integration tests."""

import os
import shutil
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path

from tests.support.brokers import free_port, wait_for_port

POSTGRES = "/usr/lib/postgresql/15/bin"


@contextmanager
def _serving(command, port, **more):
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **more
    )
    try:
        wait_for_port(port, process)
        yield
    finally:
        process.terminate()
        process.wait(20)


@contextmanager
def postgres():
    """Its JDBC address; the user and the database are `postgres`, there is no password."""
    port = free_port()
    user = "postgres" if os.getuid() == 0 else None  # it does not run as root
    with tempfile.TemporaryDirectory() as data:
        if user:
            shutil.chown(data, user)
        init = [f"{POSTGRES}/initdb", "-D", data, "-U", "postgres", "-A", "trust"]
        init += ["-E", "UTF8", "--locale=C.UTF-8", "--no-sync"]
        subprocess.run(init, check=True, user=user, capture_output=True, cwd="/")
        serve = [f"{POSTGRES}/postgres", "-D", data, "-p", str(port), "-k", data]
        serve += ["-c", "listen_addresses=127.0.0.1", "-c", "fsync=off"]
        with _serving(serve, port, user=user, cwd="/"):
            yield f"jdbc:postgresql://127.0.0.1:{port}/postgres"


@contextmanager
def mariadb():
    """Its JDBC address; the user is `shop`, its password `secret`."""
    port = free_port()
    with tempfile.TemporaryDirectory() as directory:
        yield from _run_mariadb(port, Path(directory))


def _run_mariadb(port, directory):
    data = directory / "data"
    init = ["mariadb-install-db", "--no-defaults", f"--datadir={data}", "--user=root"]
    subprocess.run(
        [*init, "--auth-root-authentication-method=normal"], check=True, capture_output=True
    )
    start = directory / "start.sql"
    start.write_text(
        "create database if not exists shop;\n"
        "create user if not exists shop@'%' identified by 'secret';\n"
        "grant all on shop.* to shop@'%';\n"
    )
    serve = ["mariadbd", "--no-defaults", f"--datadir={data}", "--user=root", f"--port={port}"]
    serve += ["--bind-address=127.0.0.1", f"--socket={data}/s", f"--init-file={start}"]
    serve += ["--skip-name-resolve"]  # or the anonymous user of localhost comes first
    with _serving([shutil.which("mariadbd") or "/usr/sbin/mariadbd", *serve[1:]], port):
        yield f"jdbc:mysql://127.0.0.1:{port}/shop?useSSL=false"
