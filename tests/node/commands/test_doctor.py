import os
import socket
import stat
from pathlib import Path

import pytest

from edgewise.log.laws import SCHEMA, make_rows
from edgewise.log.segment_writer import SegmentWriter
from edgewise.node.commands import doctor
from edgewise.node.upkeep.health import DiskSpace

JAVA_17 = 'openjdk version "17.0.15" 2025-04-15\n'
NOW_S = 1_790_000_000.0
GB = 1024**3
HERE = Path("data")


@pytest.mark.parametrize(
    ("diagnosis", "fix"),
    [
        (doctor.check_python((3, 11)), ""),
        (doctor.check_python((3, 10)), "3.11"),
        (doctor.check_package("pyspark", "4.3.0", "spark"), ""),
        (doctor.check_package("pyspark", None, "spark"), "edgewise[spark]"),
        (doctor.check_java(JAVA_17), ""),
        (doctor.check_java('java version "1.8.0"'), "JAVA_HOME"),
        (doctor.check_java(None), "embedded"),
        (doctor.check_java("Segmentation fault"), "install Java"),
        (doctor.check_port("127.0.0.1", 8006, ""), ""),
        (doctor.check_port("127.0.0.1", 8006, "Address already in use"), "sport = :8006"),
        (doctor.check_files(65536), ""),
        (doctor.check_files(64), "ulimit -n"),
        (doctor.check_disk(HERE, DiskSpace(50 * GB, 100 * GB)), ""),
        (doctor.check_disk(HERE, DiskSpace(GB, 100 * GB)), "--retain-mb"),
        (doctor.check_permissions(HERE, 0o700, mine=True), ""),
        (doctor.check_permissions(HERE, 0o755, mine=True), "chmod 700"),
        (doctor.check_permissions(HERE, 0o700, mine=False), "chown"),
        (doctor.check_clock(NOW_S, NOW_S - 1), ""),
        (doctor.check_clock(0.0, 0.0), "timedatectl"),
        (doctor.check_clock(NOW_S, NOW_S + 3600), "timedatectl"),
        (doctor.check_log(HERE, "", 5), ""),
        (doctor.check_log(HERE, "byte 7: no frame", 0), "log repair"),
    ],
)
def test_each_check_says_the_fix_where_something_is_wrong(diagnosis, fix):
    assert bool(diagnosis.fix) == bool(fix)
    assert fix in diagnosis.fix
    assert str(diagnosis).startswith("FAIL" if fix else "ok")


def test_a_machine_is_examined(tmp_path):
    tmp_path.chmod(stat.S_IRWXU)
    log = tmp_path / "log" / "S"
    writer = SegmentWriter.open(log, SCHEMA)
    writer.append(make_rows([1, 2, 3]))
    writer.close()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        found = list(doctor.examine(tmp_path, "127.0.0.1", (port,), "embedded"))
    by_subject = {d.subject: d for d in found}
    assert by_subject["port"].fix
    assert by_subject["log"].found == f"{log}: 3 events"
    assert not by_subject["permissions"].fix
    (log / "head").write_bytes(os.urandom(10))
    found = list(doctor.examine(tmp_path, "127.0.0.1", (0,), "spark"))
    assert {d.subject for d in found if d.fix} >= {"log"}
    assert {"java", "clock", "disk", "open files"} <= {d.subject for d in found}


def test_java_is_looked_for_where_spark_does(tmp_path):
    assert doctor._run_java(str(tmp_path)) is None
    assert doctor._run_java("", lambda _name: None) is None
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho 'version \"21.0.1\"' >&2\n")
    java.chmod(0o755)
    assert not doctor.check_java(doctor._run_java(str(tmp_path))).fix
