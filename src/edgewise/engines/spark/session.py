"""The Spark session: found or started, with the settings that every plan relies on."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from pyspark.sql import SparkSession


def start(master: str = "local[*]", *, app_name: str = "edgewise", scratch: Path) -> SparkSession:
    """Python workers are this interpreter; scratch files stay in one place."""
    os.environ["PYSPARK_PYTHON"] = sys.executable  # executors would take python3 from PATH
    builder = (
        SparkSession.builder.master(master)
        .appName(app_name)
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.local.dir", str(scratch))
        .config("spark.sql.warehouse.dir", str(scratch / "warehouse"))
    )
    return builder.getOrCreate()
