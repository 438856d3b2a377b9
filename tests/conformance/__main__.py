"""`python -m tests.conformance --engine embedded FILE`: a line per area, then the sum.

Cases that carry `engine_quirk` rest on a defect and are skipped. `--filter TEXT` takes only cases
whose id, area or app holds the text; `--verbose` prints why each failure failed, with the reason
from `exceptions.json` where it is known and left so.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
from collections import Counter
from pathlib import Path

from tests.conformance.compare import differences
from tests.conformance.engines import ENGINES, Case

from edgewise.errors import EdgewiseError

REASON_CHARS_MAX = 700
EXCEPTIONS = Path(__file__).parent / "exceptions.json"  # cases we leave failing, and why
CASE_SECONDS_MAX = {"embedded": 20, "spark": 120, "batch": 120}


def run_case(engine: str, case: Case) -> list[str]:
    """Reasons why it fails; none when it passes."""
    signal.setitimer(signal.ITIMER_REAL, CASE_SECONDS_MAX[engine])
    try:
        return differences(case, ENGINES[engine](case))
    except EdgewiseError as why:
        return [f"not run: {why}"]
    except Exception as why:  # noqa: BLE001  one broken case must not hide the others
        where = why.__traceback__
        while where is not None and where.tb_next is not None:
            where = where.tb_next
        line = f" ({where.tb_frame.f_code.co_filename}:{where.tb_lineno})" if where else ""
        return [f"broke: {type(why).__name__}: {why}{line}"]
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _too_long(_signal: int, _frame: object) -> None:
    raise TimeoutError("it does not end")


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.conformance")
    parser.add_argument("--engine", choices=sorted(ENGINES), default="embedded")
    parser.add_argument("--filter", default="", help="only cases whose id, area or app holds this")
    parser.add_argument("--verbose", action="store_true", help="say why each failure failed")
    parser.add_argument("file", type=Path)
    args = parser.parse_args(argv)
    signal.signal(signal.SIGALRM, _too_long)
    known = json.loads(EXCEPTIONS.read_text())
    passed: Counter[str] = Counter()
    failed: Counter[str] = Counter()
    for case in json.loads(args.file.read_text()):
        if case.get("engine_quirk"):
            continue
        if args.filter not in f"{case['id']} {case['area']} {case['app']}":
            continue
        reasons = run_case(args.engine, case)
        (failed if reasons else passed)[case["area"]] += 1
        if reasons and args.verbose:
            print(f"FAILED {case['id']}\n  {case['app']}")
            if case["id"] in known:
                print(f"  known: {known[case['id']]}")
            for reason in reasons:
                print(f"  {reason[:REASON_CHARS_MAX]}")
    for area in sorted({*passed, *failed}):
        print(f"{area}: {passed[area]} passed, {failed[area]} failed")
    print(f"{passed.total()} passed, {failed.total()} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
