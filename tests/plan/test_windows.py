from edgewise.plan.windows import WINDOWS

UNIQUE = (
    "ever", "first", "length", "time", "lengthBatch", "firstLengthBatch", "timeBatch",
    "firstTimeBatch", "timeLengthBatch", "externalTimeBatch",
)  # fmt: skip
EXTREME = ("ByLength", "ByLengthBatch", "byTime", "byTimeBatch")


def test_the_windows_of_the_language():
    assert {spec.name for spec in WINDOWS.values()} == {
        *("length", "lengthBatch", "time", "timeBatch", "externalTime", "externalTimeBatch"),
        *("timeLength", "session", "sort", "frequent", "lossyFrequent", "cron", "delay", "batch"),
        *("expression", "expressionBatch", "hopping"),
        *(f"unique:{name}" for name in UNIQUE),
        *(f"extrema:{by}{name}" for by in ("max", "min") for name in EXTREME),
    }
