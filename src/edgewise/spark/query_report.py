"""Name Spark's query and jobs after the app's, and tell Spark how many rows a batch had.

Spark counts rows where its own plan reads them. Here the driver or the tasks read the log
themselves, or several fragments read one frame, so its count would be 0 or too large; the metric
from which Spark makes `numInputRows` is set instead, when a batch has run. That metric is no
public API: where it is not found, Spark's own count stays. Used by `execution`.
"""

from __future__ import annotations

import logging
import threading
from typing import Any

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from edgewise.plan.fragments import Fragment

START_WAIT_S = 10.0  # until Spark has handed out the query whose first batch runs already
QUERIES_MAX = 3  # names in the description of a job
METRIC = "numOutputRows"

logger = logging.getLogger(__name__)


class QueryReport:
    """What Spark shows of one app."""

    def __init__(self, spark: SparkSession, app: str) -> None:
        self._spark = spark
        self._app = app
        self._query: Any = None
        self._started = threading.Event()
        self._counts = True

    def attach(self, query: StreamingQuery) -> StreamingQuery:
        """The query whose batches are reported from now on."""
        self._query = query
        self._started.set()
        return query

    def detach(self) -> None:
        """Before another query of the app starts."""
        self._started.clear()

    def name_jobs(self, fragment: Fragment, execution: object) -> None:
        """Jobs of this thread, from now on: one fragment, as it runs."""
        self._spark.sparkContext.setJobDescription(describe_job(self._app, fragment, execution))

    def count_rows(self, rows: int) -> None:
        """How many rows the batch that runs now has read, once it has read them all."""
        if not self._counts or not self._started.wait(START_WAIT_S):
            return
        try:
            execution = self._query._jsq.streamingQuery().lastExecution()  # noqa: SLF001
            leaf = execution.executedPlan().collectLeaves().head()
            leaf.metrics().apply(METRIC).set(rows)
        except (Py4JError, AttributeError, TypeError) as error:
            self._counts = False
            logger.info("numInputRows is what Spark counts itself: %s", error)


def describe_job(app: str, fragment: Fragment, execution: object) -> str:
    """Such as "shop: totals, alerts and 2 more (shuffle, 4 tasks)"."""
    names = ", ".join(fragment.queries[:QUERIES_MAX])
    more = len(fragment.queries) - QUERIES_MAX
    return f"{app}: {names}{f' and {more} more' if more > 0 else ''} ({execution})"
