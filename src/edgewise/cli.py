"""The command line: argparse only, each command is one call."""

from __future__ import annotations

import argparse


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="edgewise", description="Streams, from capture to screen."
    )
    parser.parse_args(argv)
    return 0
