"""Tell from `--master` where tasks will run, and check `--conf` and `--packages`.

Where executors are on other machines, the driver has to be found from there, and nothing on its
own disk is; on one machine neither matters and the loopback address is safer. Imports no PySpark,
so that a node refuses what cannot work before it starts a JVM. Used by `session`, by the node and
by `edgewise explain`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from edgewise.errors import SetupError

CONNECT = "sc://"
_ELSEWHERE = ("spark://", "k8s://", "yarn")
_HERE = ("local", "local[", "local-cluster[")
# With another value rows differ or state is lost: see `session`.
FIXED_SETTINGS = frozenset(
    {
        "spark.sql.session.timeZone",
        "spark.sql.adaptive.enabled",
        "spark.sql.ansi.enabled",
        "spark.sql.execution.arrow.pyspark.enabled",
        "spark.python.daemon.module",
        "spark.master",
    }
)
SETTINGS_MAX = 256


@dataclass(frozen=True, slots=True)
class Master:
    url: str
    elsewhere: bool  # whether executors may be on other machines

    @classmethod
    def parse(cls, url: str) -> Master:
        """SetupError for what is no master, and for Spark Connect, which has no driver here."""
        if url.startswith(CONNECT):
            raise SetupError(
                f"{url} is a Spark Connect server: its driver runs there, and a node needs one of "
                "its own to keep state and to append results. Give the cluster itself (--master "
                "spark://host:port, k8s://..., yarn), or run the queries on DataFrames of a "
                "Connect session with edgewise.spark.query"
            )
        if url.startswith(_ELSEWHERE):
            return cls(url, elsewhere=True)
        if url == "local" or url.startswith(_HERE[1:]):
            return cls(url, elsewhere=False)
        raise SetupError(f"--master {url}: use local[N], spark://host:port, k8s://URL or yarn")


def parse_settings(options: Iterable[str], packages: Iterable[str] = ()) -> dict[str, str]:
    """Spark's settings from `--conf KEY=VALUE` and `--packages GROUP:NAME:VERSION`."""
    settings: dict[str, str] = {}
    for option in list(options)[:SETTINGS_MAX]:
        key, equals, value = option.partition("=")
        if not equals or not key.startswith("spark."):
            raise SetupError(f"--conf {option}: write it spark.KEY=VALUE")
        if key in FIXED_SETTINGS:
            raise SetupError(f"--conf {option}: {key} is fixed, another value would change rows")
        settings[key] = value
    wanted = [name for option in packages for name in option.split(",") if name]
    for name in wanted:
        if name.count(":") < 2:
            raise SetupError(f"--packages {name}: write it group:name:version, as Maven does")
    if wanted:
        own = settings.get("spark.jars.packages", "")
        settings["spark.jars.packages"] = ",".join([own, *wanted] if own else wanted)
    return settings
