"""The peer siddhi-core: fetched with Maven once, its programs in bench/peers/siddhi compiled.

It needs a JDK, Maven and a network once. What was fetched stays in a temporary directory; a
program that changed is compiled again.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

SOURCE = Path(__file__).parent / "peers" / "siddhi"
HOME = Path(tempfile.gettempdir()) / "edgewise-bench-siddhi"
SECONDS_MAX = 600


def classpath() -> str:
    """The peer's programs, compiled; '' where that cannot be."""
    if not all(shutil.which(tool) for tool in ("mvn", "javac", "java")):
        return ""
    HOME.mkdir(exist_ok=True)
    library = HOME / "lib"
    if not _same(SOURCE / "pom.xml", HOME / "pom.xml"):
        shutil.rmtree(library, ignore_errors=True)
        (HOME / "pom.xml").unlink(missing_ok=True)
        pom = str(SOURCE / "pom.xml")
        goal = ["dependency:copy-dependencies", f"-DoutputDirectory={library}"]
        if not _done(["mvn", "-q", "-B", "-f", pom, *goal]):
            return ""
        shutil.copy(SOURCE / "pom.xml", HOME / "pom.xml")
    for program in sorted(SOURCE.glob("*.java")):
        if _same(program, HOME / program.name):
            continue
        if not _done(["javac", "-cp", f"{library}/*", "-d", str(HOME), str(program)]):
            return ""
        shutil.copy(program, HOME / program.name)
    return f"{library}/*:{HOME}"


def rate(path: str, app: str, events: int, per_ms: int = 1) -> tuple[float, int] | None:
    """Events a second of processor time of its one thread on a warm run, and rows.

    `per_ms` is how many events share one millisecond of event time.
    """
    command = ["java", "-Xmx1g", "-cp", path, "Peer", app, str(events), str(per_ms)]
    if shutil.which("taskset"):
        command = ["taskset", "-c", str(max(os.sched_getaffinity(0))), *command]
    done = subprocess.run(
        command, capture_output=True, check=False, text=True, timeout=SECONDS_MAX
    )
    words = next((ln.split() for ln in done.stdout.splitlines() if ln.startswith("rate")), None)
    return (float(words[1]), int(words[3])) if words else None


def _same(source: Path, kept: Path) -> bool:
    return kept.exists() and kept.read_bytes() == source.read_bytes()


def _done(command: list[str]) -> bool:
    done = subprocess.run(command, capture_output=True, check=False, timeout=SECONDS_MAX)
    return done.returncode == 0
