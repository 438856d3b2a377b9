"""Which fragments run in the driver; that all ways give the same rows is in `test_execution`."""

from edgewise.engines.batch.inputs import InputLogs
from edgewise.engines.batch.job import BatchRange
from edgewise.lang import compile_app
from edgewise.spark.app_plan import plan_app
from edgewise.spark.choose import SparkConfig
from edgewise.spark.fragment_runner import FragmentRunner
from edgewise.spark.micro_batch import MicroBatch
from edgewise.spark.query_report import QueryReport
from edgewise.spark.tasks import TaskFiles

APP = "define stream S (k string); from S select k, count() as n group by k insert into O;"


def test_small_batches_run_in_the_driver(tmp_path):
    plan = plan_app(compile_app(APP).app)
    files = TaskFiles({"S": "kafka://b:1/S"}, tmp_path)
    config = SparkConfig(small_batch_rows=10)
    runner = FragmentRunner(None, plan, config, files, QueryReport(None, "app"))
    found = [
        len(runner.find_driver_fragments(MicroBatch(range_, None, InputLogs({}))))
        for range_ in (BatchRange(0, {"S": 0}, {"S": end}, 0, 0) for end in (10, 11))
    ]
    assert found == [1, 0]
