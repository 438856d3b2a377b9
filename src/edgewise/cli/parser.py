"""Declare the commands, their options with defaults, and an example of each.

argparse only, so that `edgewise check` starts in a fraction of a second: everything else is
imported by `handlers` when a command runs. Used by `edgewise.cli`.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from edgewise import __version__
from edgewise.cli import handlers
from edgewise.cli.options import (
    add_access,
    add_app,
    add_app_and_logs,
    add_command,
    add_engine,
    add_functions,
    add_host,
    add_identity,
    add_isolation,
    add_log_locations,
    add_master,
    add_node_options,
    add_partitions,
)

if TYPE_CHECKING:
    from edgewise.cli.options import Parsers


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="edgewise", description="One SiddhiQL file is one pipeline: capture, compute, serve."
    )
    parser.add_argument("--version", action="version", version=f"edgewise {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for add in (
        _add_run,
        _add_edge,
        _add_demo,
        _add_replay,
        _add_check,
        _add_explain,
        _add_topology,
        _add_fmt,
        _add_lsp,
        _add_query,
        _add_publish,
        _add_tail,
        _add_log,
        _add_state,
        _add_key,
        _add_doctor,
        _add_bench,
    ):
        add(commands)
    return parser


def _add_run(commands: Parsers) -> None:
    example = "edgewise run app.siddhi --engine embedded --data edgewise-data"
    parser = add_command(commands, "run", "run an app as a node, until Ctrl-C", example)
    add_app_and_logs(parser)
    parser.add_argument(
        "--retain-mb",
        type=int,
        help="MB that each log keeps; 0: all (default: a quarter of the disk for all logs; all "
        "where ledgers are archived)",
    )
    parser.add_argument(
        "--retain-hours",
        type=float,
        help="hours that each log keeps; 0: all (default: 168; all where ledgers are archived)",
    )
    parser.add_argument(
        "--events-per-second",
        type=int,
        default=0,
        help="events that one principal, or address without tokens, may send; 0: no limit",
    )
    parser.add_argument(
        "--mb-per-second",
        type=float,
        default=0.0,
        help="MB that one principal, or address without tokens, may send; 0: no limit",
    )
    parser.add_argument("--archive-hours", type=float, help="move older ledgers to Parquet")
    parser.add_argument(
        "--archive-mb", type=int, help="move ledgers to Parquet while a log has more MB of them"
    )
    add_engine(parser)
    add_node_options(parser)
    add_isolation(parser)
    parser.add_argument(
        "--from",
        dest="start",
        help="event time, in ms or ISO 8601, where a new app starts: history as a batch, then new "
        "events (default: at the first event of the logs, as a stream)",
    )
    parser.add_argument(
        "--standby",
        choices=["cold", "warm"],
        default="warm",
        help="what a node has ready while it waits for the lease: nothing, or its engine",
    )
    parser.add_argument(
        "--watch", action="store_true", help="load the app again when its file changes"
    )
    parser.add_argument(
        "--edge-host", default="", help="address of the edge (default: that of --host)"
    )
    parser.add_argument(
        "--edge-processes", type=int, default=1, help="edge processes that share --edge-port"
    )
    add_access(parser)
    parser.set_defaults(call=handlers.run)


def _add_edge(commands: Parsers) -> None:
    example = "edgewise edge app.siddhi --data edgewise-data --edge-port 8009"
    summary = "serve the topics of an app from logs that a node writes"
    parser = add_command(commands, "edge", summary, example)
    add_app_and_logs(parser)
    add_host(parser)
    parser.add_argument(
        "--edge-port", type=int, default=8009, help="port of the page and of clients"
    )
    add_access(parser)
    parser.set_defaults(call=handlers.edge)


def _add_demo(commands: Parsers) -> None:
    summary = "run a built-in app with live data and a page"
    parser = add_command(commands, "demo", summary, "edgewise demo --engine embedded")
    add_engine(parser)
    add_node_options(parser)
    parser.set_defaults(call=handlers.demo)


def _add_replay(commands: Parsers) -> None:
    summary = "run an app over finite events in event time, and print its rows"
    example = "edgewise replay app.siddhi --events events.jsonl --stream Alerts"
    parser = add_command(commands, "replay", summary, example)
    add_app(parser)
    events = parser.add_mutually_exclusive_group(required=True)
    events.add_argument("--events", type=Path, help="file of JSON lines; - is stdin")
    events.add_argument("--data", type=Path, help="data directory of a node")
    parser.add_argument(
        "--from", dest="start", help="with --data: first event time, in ms or ISO 8601"
    )
    parser.add_argument("--to", dest="end", help="with --data: event time to stop before")
    parser.add_argument(
        "--engine",
        choices=("embedded", "spark", "batch"),
        default="embedded",
        help="what runs the queries; batch is Spark in one batch",
    )
    parser.add_argument(
        "--stream", action="append", default=[], help="print only rows of this stream"
    )
    add_isolation(parser)
    add_master(parser)
    parser.set_defaults(call=handlers.replay)


def _add_check(commands: Parsers) -> None:
    summary = "check an app: errors with line and column"
    parser = add_command(commands, "check", summary, "edgewise check app.siddhi")
    add_app(parser)
    parser.set_defaults(call=handlers.check)


def _add_explain(commands: Parsers) -> None:
    summary = "show the plan of an app: keys, fragments, bounds, recovery"
    parser = add_command(commands, "explain", summary, "edgewise explain app.siddhi")
    add_app(parser)
    parser.add_argument(
        "--format", choices=("text", "json", "svg"), default="text", help="form of the plan"
    )
    parser.add_argument("--code", action="store_true", help="print the generated kernels instead")
    add_log_locations(parser)
    add_partitions(parser)
    parser.set_defaults(call=handlers.explain)


def _add_topology(commands: Parsers) -> None:
    summary = "show an app as spouts and bolts with their tasks, as Storm and Heron do"
    parser = add_command(commands, "topology", summary, "edgewise topology app.siddhi")
    add_app(parser)
    parser.add_argument(
        "--format", choices=("text", "json"), default="text", help="form of the topology"
    )
    add_partitions(parser)
    parser.set_defaults(call=handlers.topology)


def _add_fmt(commands: Parsers) -> None:
    summary = "format an app; comments stay"
    parser = add_command(commands, "fmt", summary, "edgewise fmt app.siddhi --write")
    parser.add_argument("app", type=Path, help="a SiddhiQL file; - is stdin")
    parser.add_argument(
        "--check", action="store_true", help="change nothing, exit 1 if it would change"
    )
    parser.add_argument("--write", action="store_true", help="change the file")
    parser.set_defaults(call=handlers.fmt)


def _add_lsp(commands: Parsers) -> None:
    summary = "answer an editor about apps: errors, types, names, layout (language server)"
    parser = add_command(commands, "lsp", summary, "edgewise lsp --functions mine.py")
    add_functions(parser)
    parser.add_argument(
        "--grammar", action="store_true", help="print the colours for an editor (TextMate) and end"
    )
    parser.set_defaults(call=handlers.lsp)


def _add_query(commands: Parsers) -> None:
    example = "edgewise query app.siddhi \"from Names on symbol == 'ibm' select name\""
    summary = "answer an on-demand query from what an app holds, as JSON lines"
    parser = add_command(commands, "query", summary, example)
    add_app_and_logs(parser)
    parser.add_argument("query", help="the text: from STORE [on CONDITION] select ...")
    parser.set_defaults(call=handlers.query)


def _add_publish(commands: Parsers) -> None:
    example = "edgewise publish login_stream --events logins.jsonl"
    parser = add_command(commands, "publish", "send events from JSON lines to a stream", example)
    parser.add_argument("stream", help="name of the stream")
    parser.add_argument(
        "--events", type=Path, default=Path("-"), help="file of JSON lines; - is stdin"
    )
    parser.add_argument(
        "--url",
        action="append",
        help="ingest URL of a node (default: http://127.0.0.1:8006); again for each node",
    )
    parser.add_argument(
        "--producer", default="", help="a name: the same events sent again under it count once"
    )
    add_identity(parser)
    parser.set_defaults(call=handlers.publish)


def _add_tail(commands: Parsers) -> None:
    summary = "print the values of topics as they change, as JSON lines"
    parser = add_command(commands, "tail", summary, "edgewise tail 'alerts/#' --count 10")
    parser.add_argument("selector", help="a path; + is one level, # is everything below")
    parser.add_argument("--url", default="ws://127.0.0.1:8008/ws", help="edge URL of a node")
    parser.add_argument("--count", type=int, default=0, help="end after so many lines; 0: never")
    add_identity(parser)
    parser.set_defaults(call=handlers.tail)


def _add_log(commands: Parsers) -> None:
    about = "list, inspect, verify, repair, copy, tail, archive logs"
    # Its own parser, which also prints its help, needs Arrow: `handlers` builds it.
    parser = commands.add_parser("log", help=about, add_help=False)
    parser.add_argument("-h", "--help", action="store_true")
    parser.add_argument("rest", nargs=argparse.REMAINDER)
    parser.set_defaults(call=handlers.log)


def _add_state(commands: Parsers) -> None:
    summary = "show what queries hold in state: size, keys, versions, oldest"
    parser = add_command(commands, "state", summary, "edgewise state edgewise-data --largest 3")
    parser.add_argument("location", help="a data directory, a checkpoint, or a URI of state")
    parser.add_argument(
        "--largest", type=int, default=0, help="show so many keys of each key partition"
    )
    parser.add_argument("--json", action="store_true", help="a JSON object per key partition")
    parser.set_defaults(call=handlers.state)


def _add_key(commands: Parsers) -> None:
    summary = "add, list and revoke API keys of machines"
    example = "edgewise key add sensor-7 --ingest readings --api-keys keys.jsonl"
    parser = add_command(commands, "key", summary, example)
    parser.add_argument("action", choices=("add", "list", "revoke"), help="what to do")
    parser.add_argument("name", nargs="?", default="", help="name of the principal")
    parser.add_argument("--api-keys", type=Path, required=True, help="file of API keys")
    for claim, what in (
        ("ingest", "stream it may send events to"),
        ("read", "selector of topics it may read"),
        ("publish", "selector of topics it may publish to"),
        ("request", "selector of paths it may ask"),
    ):
        parser.add_argument(
            f"--{claim}", action="append", default=[], help=f"{what}; may be repeated"
        )
    parser.set_defaults(call=handlers.key)


def _add_doctor(commands: Parsers) -> None:
    summary = "check what a node needs of this machine, and say the fix"
    parser = add_command(commands, "doctor", summary, "edgewise doctor --data edgewise-data")
    parser.add_argument("--data", type=Path, default=Path("edgewise-data"), help="data directory")
    add_engine(parser)
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on")
    parser.add_argument("--http-port", type=int, default=8006, help="port of ingest")
    parser.add_argument("--edge-port", type=int, default=8008, help="port of the page")
    parser.set_defaults(call=handlers.doctor)


def _add_bench(commands: Parsers) -> None:
    summary = "measure the claims, each beside its peer"
    parser = add_command(commands, "bench", summary, "edgewise bench edge --quick")
    parser.add_argument("name", nargs="*", help="names of benches; none: all")
    parser.add_argument("--quick", action="store_true", help="seconds instead of minutes")
    parser.set_defaults(call=handlers.bench)
