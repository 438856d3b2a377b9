import importlib

from edgewise.spark.worker_daemon import PRELOADED


def test_every_preloaded_module_exists():
    for name in PRELOADED:
        importlib.import_module(name)
