"""Print branch coverage by room, from the data that `make test` wrote.

    python -m tests.coverage_report            rooms, then modules below 90 % of their branches
    python -m tests.coverage_report --modules  all modules

"own" counts what the room's own tests (`tests/<room>`) ran, "all" what any test ran. Only this
process is measured: what a node does in child processes and in Spark's workers is not.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from coverage import Coverage
from coverage.exceptions import NoDataError

ROOT = Path(__file__).parents[1]
SRC = ROOT / "src" / "edgewise"
LEAST_PERCENT = 90
AT_IMPORT = "^$"  # the context of what runs while a module is loaded


class Count(NamedTuple):
    branches: int
    covered: int

    @property
    def percent(self) -> float:
        return 100 * self.covered / self.branches if self.branches else 100.0


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.coverage_report")
    parser.add_argument("--modules", action="store_true", help="print every module")
    chosen = parser.parse_args(arguments)
    print(f"{'branches covered, percent':40} own tests  all tests")
    low = []
    for room, files in rooms():
        own, every = count(files, own_tests(room)), count(files, None)
        print(f"{room:40} {total(own).percent:9.1f}  {total(every).percent:9.1f}")
        for file in files:
            line = f"  {file:38} {own[file].percent:9.1f}  {every[file].percent:9.1f}"
            if chosen.modules:
                print(line)
            if own[file].percent < LEAST_PERCENT:
                low.append(line)
    if low:
        print(f"\nbelow {LEAST_PERCENT} % of branches by their own room's tests:")
        print("\n".join(low))
    return 0


def rooms() -> Iterator[tuple[str, list[str]]]:
    """Each room with its modules; modules beside the rooms come as one room."""
    modules = sorted(path.relative_to(SRC) for path in SRC.rglob("*.py"))
    names = sorted({path.parts[0] for path in modules if len(path.parts) > 1})
    yield "edgewise", [str(path) for path in modules if len(path.parts) == 1]
    for name in names:
        yield name, [str(path) for path in modules if path.parts[0] == name and path.parts[1:]]


def own_tests(room: str) -> str:
    return "^tests/test_" if room == "edgewise" else f"^tests/{room}/"


def count(files: list[str], tests: str | None) -> dict[str, Count]:
    """Branches of each file, and how many of them tests of that name ran."""
    measured = Coverage(data_file=ROOT / ".coverage", config_file=str(ROOT / "pyproject.toml"))
    measured.load()
    with tempfile.NamedTemporaryFile(suffix=".json") as report:
        try:
            measured.json_report(
                include=[str(SRC / file) for file in files],
                contexts=None if tests is None else [tests, AT_IMPORT],
                outfile=report.name,
            )
        except NoDataError:
            sys.exit("no data: run `make test` first")
        found = json.loads(Path(report.name).read_text())["files"]
    summaries = {Path(name).resolve(): entry["summary"] for name, entry in found.items()}
    counts = {}
    for file in files:
        entry = summaries.get((SRC / file).resolve(), {})
        branches, covered = entry.get("num_branches", 0), entry.get("covered_branches", 0)
        counts[file] = Count(branches, covered)
    return counts


def total(counts: dict[str, Count]) -> Count:
    return Count(sum(c.branches for c in counts.values()), sum(c.covered for c in counts.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
