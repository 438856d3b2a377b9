"""`python -m tests.conformance --engine embedded FILE`: a line per area, then the sum.

Cases that carry `engine_quirk` rest on a defect and are skipped. `--filter TEXT` takes only cases
whose id, area or app holds the text, `--slice 2/5` every fifth of them from the second on;
`--verbose` prints why each failure failed. `exceptions.json` names the cases that are left, each
with its reason: on every engine, and where events go through logs, which is Spark. There
EDGEWISE_SEED varies where batches are cut. The exit code is 1 where another case fails.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tests.conformance.compare import differences
from tests.conformance.engines import Case, play_embedded

from edgewise.errors import EdgewiseError

ENGINES = ("embedded", "spark", "batch")
REASON_CHARS_MAX = 700
EXCEPTIONS = Path(__file__).parent / "exceptions.json"  # cases we leave failing, and why
CASE_SECONDS_MAX = 20
GROUP = 25  # cases that share a query on Spark


def run_case(case: Case) -> list[str]:
    """Reasons why it fails on the embedded engine; none when it passes."""
    signal.setitimer(signal.ITIMER_REAL, CASE_SECONDS_MAX)
    try:
        return differences(case, play_embedded(case))
    except Exception as why:  # noqa: BLE001  one broken case must not hide the others
        return _broke(why)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def run_all(engine: str, cases: list[Case]) -> Iterator[tuple[Case, list[str]]]:
    """Each case with the reasons why it fails."""
    if engine == "embedded":
        yield from ((case, run_case(case)) for case in cases)
        return
    from tests.conformance.on_spark import as_logged, play_group

    cases = sorted(cases, key=_questions)  # a group goes on until its last question
    for at in range(0, len(cases), GROUP):
        group = cases[at : at + GROUP]
        for case, found in zip(group, play_group(group, engine), strict=True):
            broke = isinstance(found, Exception)
            yield case, _broke(found) if broke else differences(as_logged(case, found), found)


def _questions(case: Case) -> int:
    return sum("query" in step for step in case["steps"])


def known(engine: str) -> dict[str, str]:
    """The cases that are left on this engine, each with its reason."""
    found = json.loads(EXCEPTIONS.read_text())
    return found["everywhere"] | ({} if engine == "embedded" else found["through logs"])


def _broke(why: Exception) -> list[str]:
    if isinstance(why, EdgewiseError):
        return [f"not run: {why}"]
    where = why.__traceback__
    while where is not None and where.tb_next is not None:
        where = where.tb_next
    line = f" ({where.tb_frame.f_code.co_filename}:{where.tb_lineno})" if where else ""
    return [f"broke: {type(why).__name__}: {why}{line}"]


def _too_long(_signal: int, _frame: object) -> None:
    raise TimeoutError("it does not end")


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.conformance")
    parser.add_argument("--engine", choices=ENGINES, default="embedded")
    parser.add_argument("--filter", default="", help="only cases whose id, area or app holds this")
    parser.add_argument("--slice", default="1/1", help="I/N: every N-th case from the I-th on")
    parser.add_argument("--verbose", action="store_true", help="say why each failure failed")
    parser.add_argument("file", type=Path)
    args = parser.parse_args(argv)
    signal.signal(signal.SIGALRM, _too_long)
    left = known(args.engine)
    passed: Counter[str] = Counter()
    failed: Counter[str] = Counter()
    first, step = (int(n) for n in args.slice.split("/"))
    cases = [c for c in json.loads(args.file.read_text()) if not c.get("engine_quirk")]
    chosen = [c for c in cases if args.filter in f"{c['id']} {c['area']} {c['app']}"]
    unexpected = 0
    for case, reasons in run_all(args.engine, chosen[first - 1 :: step]):
        (failed if reasons else passed)[case["area"]] += 1
        unexpected += bool(reasons) and case["id"] not in left
        if args.engine != "embedded" and (passed.total() + failed.total()) % GROUP == 0:
            print(f"... {passed.total()} passed, {failed.total()} failed", flush=True)
        if reasons and args.verbose:
            print(f"FAILED {case['id']}\n  {case['app']}")
            if case["id"] in left:
                print(f"  left: {left[case['id']]}")
            for reason in reasons:
                print(f"  {reason[:REASON_CHARS_MAX]}")
        sys.stdout.flush()
    for area in sorted({*passed, *failed}):
        print(f"{area}: {passed[area]} passed, {failed[area]} failed")
    print(f"{passed.total()} passed, {failed.total()} failed")
    if failed:
        print(f"of these {failed.total() - unexpected} have a reason in {EXCEPTIONS.name}")
    return 1 if unexpected else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
