"""The report of all faults: `python -m tests.faults [pytest words ...]`.

Runs every test that tries a fault and prints, for each, how often and how many events were checked
after it. Exit 1 when one of them failed.
"""

import re
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
FILES = (
    "log/test_faults.py",
    "log/test_segment.py::test_a_thousand_kills",
    "log/test_real_disk.py",
    "log/test_recovery.py",
    "log/test_kafka.py",
    "gateway/test_faults.py",
    "gateway/test_cuts.py",
    "gateway/test_mqtt.py::test_a_broker_that_stops_and_starts_again_loses_nothing",
    "gateway/test_mqtt.py::test_a_network_that_is_cut_again_and_again_loses_nothing",
    "gateway/test_kafka.py::test_a_broker_that_stops_and_starts_again_loses_and_doubles_nothing",
)
_SAID = re.compile(r"^faults(?: tried)?: (\d+).*$", re.MULTILINE)
_CHECKED = re.compile(r"checked: (\d+)")


class Report:
    def __init__(self):
        self.lines = []
        self.failed = []

    def pytest_runtest_logreport(self, report):
        if report.when == "call":
            found = list(_SAID.finditer(report.capstdout))
            self.lines += [(report.nodeid, m[0], int(m[1])) for m in found]
        if report.failed:
            self.failed.append(report.nodeid)


def main(words):
    report = Report()
    files = [str(HERE / name) for name in FILES]
    pytest.main(["-q", "--no-header", "-m", "", *files, *words], plugins=[report])
    print("\nfaults tried, and what was checked after them")
    checked = 0
    for _, line, _ in report.lines:
        checked += sum(map(int, _CHECKED.findall(line)))
        print(f"  {line}")
    tried = sum(count for *_, count in report.lines)
    print(f"{tried} faults tried, {checked} events checked, {len(report.failed)} tests failed")
    return 1 if report.failed or not report.lines else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
