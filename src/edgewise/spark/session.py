"""Start the Spark session, or find it, with the settings that every plan relies on.

Settings are here and nowhere else, each with its reason, because a session that is set otherwise
gives other rows (time zone, ANSI mode) or loses state (adaptive partitions). Used by the node, the
tests and the benches.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

from edgewise.errors import SetupError
from edgewise.spark.masters import Master
from edgewise.spark.source import LogSource

# Half of a micro-batch's floor is checkpoint files; these keep their number small.
BATCHES_RETAINED = 20
# Spark's first choice starts the programs readlink and chmod for every file it writes, this one
# only chmod; `bench.spark --only floor` prints what the two files of a batch take (walCommit,
# commitOffsets). Both write aside and rename.
FILE_MANAGER = (
    "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
)

# Workers keep the memory that Arrow frees: getting it again took as long as the work on a batch.
# Spark stops a worker that is idle for a minute, and its memory with it.
KEEP_MEMORY = ("MIMALLOC_PURGE_DELAY", "-1")
PYTHON = "spark.pyspark.python"  # Spark itself reads it only in spark-submit
JAVA_OPTIONS = "spark.driver.extraJavaOptions"
NO_SETTINGS: Mapping[str, str] = MappingProxyType({})


def start_session(
    master: str = "local[*]",
    *,
    scratch: Path | None = None,
    settings: Mapping[str, str] = NO_SETTINGS,
) -> SparkSession:
    """Workers run this interpreter and this package, unless `settings` name another interpreter;
    `scratch` is where shuffle files of this machine go.
    """
    elsewhere = Master.parse(master).elsewhere
    package = str(Path(__file__).parent.parent.parent)
    inherited = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    # Executors would take python3 from PATH.
    os.environ["PYSPARK_PYTHON"] = settings.get(PYTHON, sys.executable)
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ["PYTHONPATH"] = os.pathsep.join(
        dict.fromkeys(p for p in (package, *inherited) if p)
    )
    if not elsewhere:  # executors on other machines have to find the driver
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ.setdefault(*KEEP_MEMORY)
    log4j = Path(__file__).parent / "log4j2.properties"
    java = f"-Dlog4j2.configurationFile={log4j.as_uri()} {settings.get(JAVA_OPTIONS, '')}"
    builder = (
        SparkSession.builder.master(master)
        .appName("edgewise")
        .config(JAVA_OPTIONS, java.strip())
        .config("spark.ui.enabled", str(elsewhere).lower())  # on one machine it costs memory
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.adaptive.enabled", "false")  # partitions are ours: state lives by them
        .config("spark.sql.execution.arrow.pyspark.enabled", "true")
        .config("spark.sql.streaming.minBatchesToRetain", str(BATCHES_RETAINED))
        .config("spark.sql.streaming.numRecentProgressUpdates", "8")
        .config("spark.sql.ansi.enabled", "false")  # SiddhiQL: x/0 is null, ints wrap
        .config("spark.python.daemon.module", "edgewise.spark.worker_daemon")
        # Over TCP the end of a task's input is a second small write: Nagle's algorithm holds it
        # back until the first is acknowledged, which Linux delays by 40 ms.
        .config("spark.python.unix.domain.socket.enabled", "true")
        .config(f"spark.executorEnv.{KEEP_MEMORY[0]}", KEEP_MEMORY[1])
    )
    if not elsewhere:
        builder = builder.config("spark.sql.streaming.checkpointFileManagerClass", FILE_MANAGER)
    if scratch is not None and not elsewhere:  # other machines have other disks
        scratch.mkdir(parents=True, exist_ok=True)
        builder = builder.config("spark.local.dir", str(scratch.absolute()))
    for key, value in settings.items():
        builder = builder if key == JAVA_OPTIONS else builder.config(key, value)
    try:
        session = builder.getOrCreate()
    except Py4JJavaError as error:  # a page of Java's own; its first line is for people
        reason = str(error.java_exception.getMessage()).partition("\n")[0]
        raise SetupError(f"Spark does not start on {master}: {reason}") from error
    session.dataSource.register(LogSource)
    if not elsewhere:
        _disable_checksum_files(session)
    return session


def _disable_checksum_files(session: SparkSession) -> None:
    """Write one file per local checkpoint file, not two: each one starts the program chmod.

    There is no setting for it; all of Hadoop shares this one object for local files.
    """
    jvm: Any = session._jvm  # noqa: SLF001
    settings = session._jsc.hadoopConfiguration()  # noqa: SLF001
    jvm.org.apache.hadoop.fs.FileSystem.getLocal(settings).setWriteChecksum(False)
