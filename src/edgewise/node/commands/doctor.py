"""Check what a node needs of its machine, and say the fix for what is missing (`edgewise doctor`).

    Python, packages, Java, ports, files limit, disk, permissions, clock, logs

Each check is a function of what it examines, so that it is tested without breaking the machine; it
returns what it found, or a problem with its fix. Only `examine` looks at the machine. A log is
opened and not read to its end: that is `edgewise log verify`.
"""

from __future__ import annotations

import os
import re
import resource
import shutil
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from edgewise.errors import EdgewiseError
from edgewise.log.ledger import find_logs
from edgewise.log.segment_reader import SegmentReader
from edgewise.node.upkeep.health import DiskSpace, measure_disk

PYTHON_MIN = (3, 11)
JAVA_VERSIONS = (17, 21)
FILES_MIN = 4096  # of one process; an edge has one for each client
YEAR_MIN_S = 1_735_689_600  # 2025: a machine without a clock starts in 1970
FUTURE_MAX_S = 60  # a file that is newer than the clock was written by another clock
COMMAND_TIMEOUT_S = 20


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """`fix` is '' where nothing is wrong."""

    subject: str
    found: str
    fix: str = ""

    def __str__(self) -> str:
        state = "FAIL" if self.fix else "ok"
        line = f"{state:<5} {self.subject:<12} {self.found}"
        return f"{line}\n      fix: {self.fix}" if self.fix else line


def check_python(found: tuple[int, int]) -> Diagnosis:
    fix = "" if found >= PYTHON_MIN else "install Python 3.11 or newer"
    return Diagnosis("python", ".".join(map(str, found)), fix)


def check_package(name: str, found: str | None, extra: str) -> Diagnosis:
    if found is not None:
        return Diagnosis("package", f"{name} {found}")
    return Diagnosis("package", f"{name} is missing", f"pip install 'edgewise[{extra}]'")


def check_java(output: str | None) -> Diagnosis:
    """`output` of `java -version`; None where there is none."""
    wanted = " or ".join(map(str, JAVA_VERSIONS))
    fix = f"install Java {wanted} or set JAVA_HOME; --engine embedded needs none"
    if output is None:
        return Diagnosis("java", "no java command", fix)
    named = re.search(r'version "(\d+)', output)
    major = int(named[1]) if named else 0
    return Diagnosis("java", f"version {major}", "" if major in JAVA_VERSIONS else fix)


def check_port(host: str, port: int, problem: str) -> Diagnosis:
    """`problem`: why it cannot be bound; '' where it can."""
    if not problem:
        return Diagnosis("port", f"{host}:{port} is free")
    fix = f"stop the program that has it (ss -ltnp 'sport = :{port}') or choose another port"
    return Diagnosis("port", f"{host}:{port}: {problem}", fix)


def check_files(limit: int) -> Diagnosis:
    fix = "" if limit >= FILES_MIN else f"ulimit -n 65536 (LimitNOFILE= in systemd), now {limit}"
    return Diagnosis("open files", f"up to {limit}", fix)


def check_disk(directory: Path, space: DiskSpace) -> Diagnosis:
    found = f"{space.free // 1024**2:,} of {space.total // 1024**2:,} MB are free at {directory}"
    low = space.free <= space.low
    return Diagnosis("disk", found, "free some, or keep less with --retain-mb" if low else "")


def check_permissions(path: Path, mode: int, *, mine: bool) -> Diagnosis:
    found = f"{path} has the mode {mode:o}"
    if not mine:
        return Diagnosis("permissions", f"{found}, of another user", f"chown -R $USER {path}")
    return Diagnosis("permissions", found, f"chmod 700 {path}" if mode & 0o077 else "")


def check_clock(now_s: float, newest_file_s: float) -> Diagnosis:
    found = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now_s))
    if now_s < YEAR_MIN_S:
        return Diagnosis("clock", found, "set the clock: timedatectl set-ntp true")
    if newest_file_s > now_s + FUTURE_MAX_S:
        ahead = f"{found}, and files are {newest_file_s - now_s:.0f} s newer"
        return Diagnosis("clock", ahead, "set the clock: timedatectl set-ntp true")
    return Diagnosis("clock", found)


def check_log(directory: Path, problem: str, events: int) -> Diagnosis:
    if problem:
        fix = f"edgewise log verify {directory}, then edgewise log repair {directory}"
        return Diagnosis("log", problem, fix)
    return Diagnosis("log", f"{directory}: {events:,} events")


def examine(data: Path, host: str, ports: tuple[int, ...], engine: str) -> Iterator[Diagnosis]:
    """All checks of this machine, for a node with these settings."""
    yield check_python(sys.version_info[:2])
    for name in ("edgewise", "pyarrow", "uvicorn"):
        yield check_package(name, _find_version(name), "all")
    if engine == "spark":
        yield check_package("pyspark", _find_version("pyspark"), "spark")
        yield check_java(_run_java(os.environ.get("JAVA_HOME", "")))
    for port in ports:
        yield check_port(host, port, _try_port(host, port))
    yield check_files(resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    exists = data.exists()
    yield check_disk(data, measure_disk(data if exists else Path()))
    newest_s = data.stat().st_mtime if exists else 0.0
    yield check_clock(time.time(), newest_s)
    if exists:
        found = data.stat()
        mine = found.st_uid == os.geteuid()
        yield check_permissions(data, stat.S_IMODE(found.st_mode), mine=mine)
        for log in find_logs(data):
            yield _examine_log(log)


def _examine_log(log: Path) -> Diagnosis:
    try:
        reader = SegmentReader.open(log)
        events = reader.head().offset - reader.earliest()
        reader.close()
    except (EdgewiseError, OSError) as error:
        return check_log(log, str(error), 0)
    return check_log(log, "", events)


def _find_version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _run_java(home: str, find: Callable[[str], str | None] = shutil.which) -> str | None:
    java = str(Path(home) / "bin" / "java") if home else find("java")
    if java is None:
        return None
    try:
        command = [java, "-version"]
        run = subprocess.run(  # noqa: S603  the user's own Java
            command, capture_output=True, text=True, timeout=COMMAND_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return run.stderr + run.stdout


def _try_port(host: str, port: int) -> str:
    try:
        socket.create_server((host, port)).close()
    except OSError as error:
        return error.strerror or str(error)
    return ""
