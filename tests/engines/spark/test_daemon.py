import importlib

from edgewise.engines.spark.daemon import PRELOADED


def test_everything_that_is_loaded_before_the_forks_exists():
    for name in PRELOADED:
        importlib.import_module(name)
