from edgewise.plan.windows import WINDOWS


def test_the_windows_of_the_language():
    assert {spec.name for spec in WINDOWS.values()} == {
        *("length", "lengthBatch", "time", "timeBatch", "externalTime", "externalTimeBatch"),
        *("timeLength", "session", "sort", "frequent", "lossyFrequent", "cron", "delay", "batch"),
        *("expression", "expressionBatch", "hopping"),
    }
