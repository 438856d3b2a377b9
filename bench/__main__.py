"""Run every claim, or those named: `python -m bench [--quick] [name ...]`.

A claim is a script beside this file with `main(argv) -> int`; it prints its own table.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import time
from pathlib import Path


def names() -> list[str]:
    """Scripts with a `main` of their own; the others are what they share."""
    files = sorted(Path(__file__).parent.glob("*.py"))
    return [f.stem for f in files if f.stem[0] != "_" and "\ndef main(" in f.read_text()]


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("name", nargs="*", help=f"any of: {', '.join(names())}; all by default")
    parser.add_argument("--quick", action="store_true", help="seconds instead of minutes")
    args = parser.parse_args(argv)
    unknown = [n for n in args.name if n not in names()]
    if unknown:
        parser.error(f"there is no bench/{unknown[0]}.py; choose from {', '.join(names())}")
    worst = 0
    for name in args.name or names():
        print(f"\n== bench.{name}", flush=True)
        start = time.monotonic()
        worst = max(worst, importlib.import_module(f"bench.{name}").main(argv_of(args)))
        print(f"   ({time.monotonic() - start:.1f} s)", flush=True)
    return worst


def argv_of(args: argparse.Namespace) -> list[str]:
    return ["--quick"] if args.quick else []


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
