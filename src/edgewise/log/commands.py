"""Run `edgewise log`: list, inspect, verify, repair, copy, tail, archive.

The command line calls `add_arguments` and `run`. Kafka is imported only where a location names it.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from pathlib import Path

from edgewise.errors import LogError
from edgewise.event.arrow import from_arrow
from edgewise.log.copy_log import CopyProgress, copy_log, name_copy_producer
from edgewise.log.ledger import Ledger, archive_ledgers, find_logs, is_log, list_ledgers
from edgewise.log.locations import open_reader, open_writer, parse_broker, parse_kafka_location
from edgewise.log.repair import RepairMode, find_lost_ranges, repair_log
from edgewise.log.rows import read_defaults
from edgewise.log.segment_reader import SegmentReader
from edgewise.log.tail import find_offset_at, parse_time, tail
from edgewise.log.verify import VerifyReport, verify_log

_DAY_MS = 24 * 60 * 60 * 1000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="log_command", required=True, metavar="COMMAND")
    location = "a log's directory, or kafka://host:port/topic"
    locations = "a log, a directory with logs in it, or kafka://host:port[/topic]"

    one = verbs.add_parser("list", help="logs and their ledgers, with offsets and times")
    one.add_argument("location", help=locations)

    one = verbs.add_parser("inspect", help="schema, head, clock and size of a log")
    one.add_argument("location", help=location)

    one = verbs.add_parser("verify", help="check every byte; exit 1 when something is wrong")
    one.add_argument("location", help=locations)

    one = verbs.add_parser(
        "copy", help="copy a log to another location; an interrupted copy resumes"
    )
    one.add_argument("source", help=location)
    one.add_argument("destination", help=location)
    one.add_argument("--from", dest="start", type=int, help="first offset (default: the earliest)")
    one.add_argument(
        "--to", dest="end", type=int, help="offset to stop before (default: the head)"
    )

    one = verbs.add_parser("tail", help="rows as JSON lines")
    one.add_argument("location", help=location)
    where = one.add_mutually_exclusive_group()
    where.add_argument("--from", dest="start", type=int, help="first offset")
    where.add_argument("--time", help="start where event time reaches this: ms or ISO 8601")
    where.add_argument("--last", type=int, default=10, help="the last N rows (default 10)")
    one.add_argument("-n", "--count", type=int, help="stop after so many rows")
    one.add_argument("-f", "--follow", action="store_true", help="wait for more rows at the end")

    one = verbs.add_parser(
        "repair",
        help="make a damaged log whole again; without an option only say what is lost",
    )
    one.add_argument("location", type=Path, help="a log, while nothing writes it")
    how = one.add_mutually_exclusive_group()
    how.add_argument("--cut", action="store_true", help="end the log where the damage starts")
    how.add_argument(
        "--skip",
        action="store_true",
        help="keep all offsets; lost rows become rows without events",
    )
    how.add_argument("--restore", metavar="LOCATION", help="take lost rows from a copy of the log")

    one = verbs.add_parser("archive", help="move sealed ledgers to Parquet")
    one.add_argument("path", type=Path, help="a log, or a directory with logs in it")
    one.add_argument("--days", type=float, default=1.0, help="sealed that long ago (default 1)")


def run(args: argparse.Namespace) -> int:
    """0 if all is well, 1 if `verify` or `repair` found damage and left it."""
    return {
        "list": _list,
        "inspect": _inspect,
        "verify": _verify,
        "copy": _copy,
        "tail": _tail,
        "archive": _archive,
        "repair": _repair,
    }[args.log_command](args)


def _find_logs(path: Path) -> list[Path]:
    if not path.is_dir():
        raise LogError(f"{path}: there is no such directory")
    found = list(find_logs(path))
    if not found:
        raise LogError(f"{path}: there is no log in it")
    return found


def _format_time(ts: int | None) -> str:
    if ts is None:
        return "-"
    try:
        return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(ts // 1000)) + f".{ts % 1000:03d}Z"
    except (OverflowError, ValueError, OSError):
        return f"{ts} ms"


def _format_row(ledger: Ledger) -> str:
    state = ledger.storage if ledger.sealed else "active"
    times = f"{_format_time(ledger.ts_min)}  {_format_time(ledger.ts_max)}"
    return (
        f"  {ledger.first:>14} {ledger.end:>14} {ledger.bytes:>14}  {state:<8} "
        f"{ledger.epochs[0]:>5}-{ledger.epochs[1]:<5} {times}"
    )


def _list(args: argparse.Namespace) -> int:
    for log, found in _list_ledgers(args.location):
        events, size = found[-1].end - found[0].first, sum(entry.bytes for entry in found)
        print(f"{log}: {events} events, {len(found)} ledgers, {size} bytes")
        print(f"  {'first':>14} {'end':>14} {'bytes':>14}  {'storage':<8} {'epochs':^11} times")
        for entry in found:
            print(_format_row(entry))
    return 0


def _list_ledgers(location: str) -> Iterator[tuple[str, list[Ledger]]]:
    """The logs at a location with their ledgers."""
    broker, topics = _select_topics(location)
    if not broker:
        yield from ((str(log), list_ledgers(log)) for log in _find_logs(Path(location)))
        return
    from edgewise.log.kafka_verify import list_topic_ledgers

    yield from ((f"kafka://{broker}/{name}", list_topic_ledgers(broker, name)) for name in topics)


def _select_topics(location: str) -> tuple[str, list[str]]:
    """The broker of a location and the logs on it; ('', ...) for a directory."""
    if not (bare := parse_broker(location)):
        broker, topic = parse_kafka_location(location)
        return broker, [topic]

    from edgewise.log.kafka_verify import find_log_topics

    if not (found := find_log_topics(bare)):
        raise LogError(f"{location}: there is no log on this broker")
    return bare, found


def _inspect(args: argparse.Namespace) -> int:
    reader = open_reader(args.location)
    schema, head = from_arrow(reader.schema), reader.head()
    attributes = ", ".join(f"{a.name} {a.type.value}" for a in schema.attributes)
    print(f"define stream {schema.name} ({attributes});")
    print(f"offsets   {reader.earliest()} to {head.offset}")
    print(f"epoch     {head.epoch}")
    clock = reader.clock(head.offset)
    print(f"clock     {_format_time(clock) if head.offset else '-'}")
    if not parse_kafka_location(args.location)[0]:
        found = list_ledgers(Path(args.location))
        moved = sum(entry.storage == "parquet" for entry in found)
        print(f"ledgers   {len(found)}, {moved} of them Parquet")
        print(f"bytes     {sum(entry.bytes for entry in found)}")
    reader.close()
    return 0


def _verify(args: argparse.Namespace) -> int:
    worst = 0
    for log, report in _verify_logs(args.location):
        state = "good" if report.good else f"{len(report.findings)} findings"
        files = f"{report.files} files" if report.files else "a topic"
        print(f"{log}: {files}, {report.events} events, {report.bytes} bytes: {state}")
        for finding in report.findings:
            print(f"  {finding}")
            worst = 1
    return worst


def _verify_logs(location: str) -> Iterator[tuple[str, VerifyReport]]:
    broker, topics = _select_topics(location)
    if not broker:
        yield from ((str(log), verify_log(log)) for log in _find_logs(Path(location)))
        return
    from edgewise.log.kafka_verify import verify_topic

    yield from ((f"kafka://{broker}/{name}", verify_topic(broker, name)) for name in topics)


def _copy(args: argparse.Namespace) -> int:
    reader = open_reader(args.source)
    name = str(Path(args.source).resolve()) if is_log(Path(args.source)) else args.source
    schema = reader.schema
    writer = open_writer(args.destination, from_arrow(schema), defaults=read_defaults(schema))
    try:
        end = reader.head().offset if args.end is None else args.end
        start = reader.earliest() if args.start is None else args.start
        start = max(start, writer.last_sequence(name_copy_producer(name)))
        progress = CopyProgress(max(end - start, 0))
        first, last = copy_log(
            reader, writer, name, start=args.start, end=end, progress=progress.add
        )  # fmt: skip
        progress.close()
    finally:
        writer.close()
        reader.close()
    print(f"copied offsets {first} to {last}")
    return 0


def _tail(args: argparse.Namespace) -> int:
    reader = open_reader(args.location)
    if args.start is not None:
        start = args.start
    elif args.time is not None:
        start = find_offset_at(reader, parse_time(args.time))
    else:
        start = max(reader.earliest(), reader.head().offset - args.last)
    try:
        for line in tail(reader, start, count=args.count, follow=args.follow):
            print(line, flush=args.follow)
    finally:
        reader.close()
    return 0


def _repair(args: argparse.Namespace) -> int:
    if not (args.cut or args.skip or args.restore):
        lost = find_lost_ranges(args.location)
        for entry in lost:
            print(f"  {entry}")
        print("nothing is lost" if not lost else "choose --skip, --restore LOCATION or --cut")
        return int(bool(lost))
    modes = {
        RepairMode.CUT: args.cut,
        RepairMode.SKIP: args.skip,
        RepairMode.RESTORE: args.restore,
    }
    mode = next(mode for mode, asked in modes.items() if asked)
    copy = open_reader(args.restore) if args.restore else None
    try:
        for entry in repair_log(args.location, mode, time.time_ns() // 1_000_000, copy):
            print(f"  {mode.value}: {entry}")
    finally:
        if copy is not None:
            copy.close()
    report = verify_log(args.location)
    print(f"{args.location}: {'good' if report.good else f'{len(report.findings)} findings'}")
    return int(not report.good)


def _archive(args: argparse.Namespace) -> int:
    for log in _find_logs(args.path):
        SegmentReader.open(log).close()  # reports damage before anything is changed
        moved = archive_ledgers(log, time.time_ns() // 1_000_000, int(args.days * _DAY_MS))
        print(f"{log}: moved {moved} ledgers to Parquet")
    return 0
