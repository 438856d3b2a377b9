"""The command line: argparse only, each command is one call. Rooms are imported when needed."""

from __future__ import annotations

import argparse
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from edgewise import __version__
from edgewise.errors import AppError, EdgewiseError, SetupError

if TYPE_CHECKING:  # a real import would start everything that a node needs
    from edgewise.node.config import NodeConfig

BAD_INPUT = 2


def main(argv: list[str] | None = None) -> int:
    arguments = _parser().parse_args(argv)
    try:
        return int(arguments.call(arguments) or 0)
    except EdgewiseError as error:
        print(error, file=sys.stderr)
        return BAD_INPUT
    except BrokenPipeError:
        sys.stderr.close()
        return 0
    except KeyboardInterrupt:
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="edgewise", description="One SiddhiQL file is one pipeline: capture, compute, serve."
    )
    parser.add_argument("--version", action="version", version=f"edgewise {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    _add_run(commands)
    _add_edge(commands)
    _add_demo(commands)
    _add_replay(commands)
    _add_check(commands)
    _add_explain(commands)
    _add_fmt(commands)
    _add_publish(commands)
    _add_tail(commands)
    _add_log(commands)
    _add_state(commands)
    _add_bench(commands)
    return parser


def _add_run(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("run", help="capture, compute, serve")
    _add_app_and_logs(parser)
    parser.add_argument("--retain-mb", type=int, default=0, help="of each log; 0 keeps all")
    parser.add_argument("--retain-hours", type=float, default=0, help="of each log; 0 keeps all")
    parser.add_argument("--archive-hours", type=float, help="ledgers as old as that to Parquet")
    parser.add_argument("--archive-mb", type=int, help="sealed segments a log may keep as such")
    parser.add_argument("--engine", choices=("spark", "embedded"), default="spark")
    _add_node_options(parser)
    parser.add_argument("--watch", action="store_true", help="take the app again when it changes")
    parser.add_argument("--edge-host", default="", help="for clients, if not --host")
    parser.add_argument("--edge-processes", type=int, default=1, help="that share --edge-port")
    _add_access(parser)
    parser.set_defaults(call=_run)


def _add_edge(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("edge", help="serve the topics of logs that others write")
    _add_app_and_logs(parser)
    parser.add_argument("--host", default="127.0.0.1", help="off loopback it needs --jwt-key")
    parser.add_argument("--edge-port", type=int, default=8009, help="page and clients")
    _add_access(parser)
    parser.set_defaults(call=_edge)


def _add_app_and_logs(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("app", type=Path, help="a SiddhiQL file")
    parser.add_argument("--data", type=Path, default=Path("edgewise-data"), help="data directory")
    parser.add_argument(
        "--log", action="append", default=[], help="where logs live: PLACE or STREAM=PLACE"
    )
    _add_functions(parser)


def _add_access(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--jwt-key", type=Path, help="file with a secret or a public key in PEM")
    parser.add_argument("--revoked", type=Path, help="file of names whose tokens no longer hold")
    parser.add_argument("--origin", action="append", default=[], help="pages that may connect")
    about = "address or network of a reverse proxy that says for whom it asks"
    parser.add_argument("--trusted-proxy", action="append", default=[], help=about)
    parser.add_argument("--tls-cert", type=Path, help="certificate chain in PEM")
    parser.add_argument("--tls-key", type=Path, help="its key in PEM")


def _add_functions(parser: argparse.ArgumentParser) -> None:
    about = "functions of your own: module, module:name or file.py"
    parser.add_argument("--functions", action="append", default=[], metavar="WHERE", help=about)


def _add_demo(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("demo", help="a built-in pipeline with live data and its page")
    parser.add_argument("--engine", choices=("spark", "embedded"), default="spark")
    _add_node_options(parser)
    parser.set_defaults(call=_demo)


def _add_node_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--host", default="127.0.0.1", help="off loopback it needs --jwt-key")
    parser.add_argument("--http-port", type=int, default=8006, help="ingest; 0 takes a free one")
    parser.add_argument("--edge-port", type=int, default=8008, help="page and clients")
    parser.add_argument("--master", default="local[*]", help="Spark master")
    parser.add_argument("--partitions", type=int, default=2, help="of the key space")
    parser.add_argument(
        "--trigger", type=int, default=0, help="ms between micro-batches; 0: lowest latency"
    )
    parser.add_argument("--state", default="", help="kernel state elsewhere: a path or URI")


def _add_replay(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("replay", help="a finite run in event time, rows on stdout")
    parser.add_argument("app", type=Path, help="a SiddhiQL file")
    _add_functions(parser)
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--events", type=Path, help="JSON lines; - is stdin")
    where.add_argument("--data", type=Path, help="what a data directory holds")
    parser.add_argument("--from", dest="start", help="with --data: event time, ms or ISO 8601")
    parser.add_argument("--to", dest="end", help="likewise; without it, to the end")
    parser.add_argument("--engine", choices=("embedded", "spark", "batch"), default="embedded")
    parser.add_argument("--stream", action="append", help="only rows of this stream")
    parser.add_argument("--master", default="local[*]", help="Spark master")
    parser.set_defaults(call=_replay)


def _add_check(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("check", help="errors with line and column")
    parser.add_argument("app", type=Path, help="a SiddhiQL file")
    _add_functions(parser)
    parser.set_defaults(call=_check)


def _add_explain(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("explain", help="plan, keys, fragments, bounds, recovery")
    parser.add_argument("app", type=Path, help="a SiddhiQL file")
    _add_functions(parser)
    parser.add_argument("--format", choices=("text", "json", "svg"), default="text")
    parser.add_argument("--code", action="store_true", help="print the generated kernels instead")
    parser.add_argument("--log", action="append", default=[], help="as for run")
    parser.set_defaults(call=_explain)


def _add_fmt(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("fmt", help="format an app, comments kept")
    parser.add_argument("app", type=Path, help="a SiddhiQL file; - is stdin")
    parser.add_argument("--check", action="store_true", help="exit 1 if it would change")
    parser.add_argument("--write", action="store_true", help="change the file")
    parser.set_defaults(call=_fmt)


def _add_publish(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("publish", help="events from JSON lines into a stream")
    parser.add_argument("stream")
    parser.add_argument("--events", type=Path, default=Path("-"), help="JSON lines; - is stdin")
    parser.add_argument("--url", default="http://127.0.0.1:8006", help="a node's HTTP door")
    _add_identity(parser)
    parser.set_defaults(call=_publish)


def _add_identity(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--token-file", type=Path, help="a JWT, where the node asks for one")
    parser.add_argument("--ca", type=Path, help="certificate authority in PEM, for TLS")


def _add_tail(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("tail", help="values of topics as they change, as JSON lines")
    parser.add_argument("selector", help="a path; + is one level, # is everything below")
    parser.add_argument("--url", default="ws://127.0.0.1:8008/ws", help="a node's edge")
    parser.add_argument("--count", type=int, default=0, help="end after so many")
    _add_identity(parser)
    parser.set_defaults(call=_tail)


def _add_log(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    about = "list, inspect, verify, copy, tail, archive logs"
    parser = commands.add_parser("log", help=about, add_help=False)
    # Its own parser, also the one that helps, needs Arrow: later.
    parser.add_argument("-h", "--help", action="store_true")
    parser.add_argument("rest", nargs=argparse.REMAINDER)
    parser.set_defaults(call=_log)


def _add_state(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "state", help="what the queries hold: size, keys, versions, oldest"
    )
    parser.add_argument("place", help="a data directory, a checkpoint, or a URI of state")
    parser.add_argument("--largest", type=int, default=0, help="so many keys of each partition")
    parser.add_argument("--json", action="store_true", help="a JSON object per partition")
    parser.set_defaults(call=_state)


def _add_bench(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("bench", help="the claims, with the peer beside us")
    parser.add_argument("name", nargs="*", help="all by default")
    parser.add_argument("--quick", action="store_true", help="seconds instead of minutes")
    parser.set_defaults(call=_bench)


def _run(arguments: argparse.Namespace) -> None:
    import dataclasses

    from edgewise.log.api import LogConfig
    from edgewise.node.archiver import ArchiveConfig
    from edgewise.node.run import run

    kept = LogConfig(
        retain_bytes=arguments.retain_mb * 1024 * 1024,
        retain_ms=int(arguments.retain_hours * 3_600_000),
    )
    age, size = arguments.archive_hours, arguments.archive_mb
    archive = ArchiveConfig(
        age_ms=None if age is None else int(age * 3_600_000),
        bytes_max=None if size is None else size * 1024 * 1024,
    )
    config = _node(arguments, arguments.app, arguments.data)
    run(
        dataclasses.replace(
            config,
            log=kept,
            archive=archive,
            edge_host=arguments.edge_host,
            edge_processes=arguments.edge_processes,
            watch=arguments.watch,
            **_shared(arguments),
        )
    )


def _edge(arguments: argparse.Namespace) -> None:
    from edgewise.node.alone import serve
    from edgewise.node.config import NodeConfig
    from edgewise.node.run import with_page

    places = {"app": arguments.app, "data": arguments.data, "host": arguments.host}
    config = NodeConfig(**places, edge_port=arguments.edge_port, **_shared(arguments))
    serve(with_page(config))


def _shared(arguments: argparse.Namespace) -> dict[str, Any]:
    """Where logs live, what is added to the language, and who may come in."""
    tls = (arguments.tls_cert, arguments.tls_key) if arguments.tls_cert else None
    return {
        "homes": tuple(arguments.log),
        "functions": tuple(arguments.functions),
        "jwt_key": arguments.jwt_key,
        "revoked": arguments.revoked,
        "origins": tuple(arguments.origin),
        "trusted_proxies": tuple(arguments.trusted_proxy),
        "tls": tls,
    }


def _demo(arguments: argparse.Namespace) -> None:
    from edgewise.node.run import DEMO_APP, demo

    demo(_node(arguments, DEMO_APP, Path()))


def _node(arguments: argparse.Namespace, app: Path, data: Path) -> NodeConfig:
    from edgewise.node.config import NodeConfig

    return NodeConfig(
        app=app,
        data=data,
        host=arguments.host,
        http_port=arguments.http_port,
        edge_port=arguments.edge_port,
        engine=arguments.engine,
        master=arguments.master,
        partitions=arguments.partitions,
        trigger_ms=arguments.trigger,
        state=arguments.state,
    )


def _replay(arguments: argparse.Namespace) -> None:
    from edgewise.node import apps, replay

    app = apps.load(arguments.app, arguments.functions).app
    _demand_replay(arguments, [s.name for s in app.outputs])
    options = {} if arguments.engine == "embedded" else {"master": arguments.master}
    with ExitStack() as stack:
        if arguments.data is None:
            events = replay.read_events(stack.enter_context(_open(arguments.events)), app)
            rows = replay.replay(app, events, arguments.engine, **options)
        else:
            from edgewise.log.tail import moment
            from edgewise.node.history import history

            start, end = (moment(t) if t else None for t in (arguments.start, arguments.end))
            options |= {"start_ms": start, "end_ms": end}
            rows = history(app, arguments.data, arguments.engine, **options)
        for row in rows:
            if not arguments.stream or row.stream in arguments.stream:
                sys.stdout.buffer.write(replay.to_line(row) + b"\n")
    sys.stdout.buffer.flush()


def _demand_replay(arguments: argparse.Namespace, made: list[str]) -> None:
    """What would be left out without a word."""
    if arguments.data is None and (arguments.start or arguments.end):
        raise SetupError("--from and --to are for --data: a file is taken as a whole")
    for name in arguments.stream or ():
        if name not in made:
            known = ", ".join(made)
            raise SetupError(f"--stream {name}: the app makes no such rows; it makes {known}")


def _open(path: Path) -> BinaryIO:
    if str(path) == "-":
        return sys.stdin.buffer
    try:
        return path.open("rb")
    except OSError as error:
        raise SetupError(f"cannot read {path}: {error.strerror}") from None


def _check(arguments: argparse.Namespace) -> None:
    from edgewise.node import apps

    loaded = apps.load(arguments.app, arguments.functions)
    for problem in loaded.warnings:
        print(AppError((problem,), loaded.text, loaded.file), file=sys.stderr)
    streams, queries = len(loaded.app.streams), len(loaded.app.queries)
    print(f"{arguments.app}: ok, {streams} streams, {queries} queries")


def _explain(arguments: argparse.Namespace) -> None:
    from edgewise.node import apps

    app = apps.load(arguments.app, arguments.functions).app
    if arguments.code:
        from edgewise.engines.kernel import compile_kernel
        from edgewise.plan.rules.chain import staged
        from edgewise.plan.rules.order import rewrite

        app = rewrite(app)
        for fragment in staged(app):
            print(f"# fragment {fragment.name}\n{compile_kernel(app, fragment).source}")
        return
    from edgewise.node.recovery import notes
    from edgewise.plan.explain import explain_json, explain_text
    from edgewise.plan.picture import explain_svg

    if arguments.format == "svg":
        print(explain_svg(app, notes(app)))
    else:
        print({"text": explain_text, "json": explain_json}[arguments.format](app, notes(app)))
    if arguments.format == "text":
        from edgewise.plan.stages import stage_lines

        print("\n".join(stage_lines(app)))
        if arguments.log:
            from edgewise.node.homes import Homes

            print("\n".join(Homes.of(arguments.log, app).lines(app)))


def _fmt(arguments: argparse.Namespace) -> int:
    from edgewise.lang import format_app

    with _open(arguments.app) as file:
        text = file.read().decode()
    neat = format_app(text, str(arguments.app))
    if arguments.check:
        return int(neat != text)
    if arguments.write and str(arguments.app) != "-":
        arguments.app.write_text(neat)
    else:
        sys.stdout.write(neat)
    return 0


def _publish(arguments: argparse.Namespace) -> None:
    from edgewise.node.hands import publish

    with _open(arguments.events) as lines:
        accepted = publish(arguments.url, arguments.stream, lines, _token(arguments), arguments.ca)
    print(f"{accepted} events accepted")


def _token(arguments: argparse.Namespace) -> str:
    if not arguments.token_file:
        return ""
    with _open(arguments.token_file) as file:
        return file.read().decode().strip()


def _tail(arguments: argparse.Namespace) -> None:
    from edgewise.node.hands import tail

    who = (_token(arguments), arguments.ca)
    for line in tail(arguments.url, arguments.selector, arguments.count, *who):
        sys.stdout.buffer.write(line + b"\n")
        sys.stdout.buffer.flush()


def _log(arguments: argparse.Namespace) -> int:
    from edgewise.log import commands

    parser = argparse.ArgumentParser(prog="edgewise log")
    commands.add_arguments(parser)
    rest = ["--help"] if arguments.help else arguments.rest
    return commands.run(parser.parse_args(rest))


def _state(arguments: argparse.Namespace) -> None:
    from edgewise.node import state

    for line in state.lines(arguments.place, as_json=arguments.json, largest=arguments.largest):
        print(line)


def _bench(arguments: argparse.Namespace) -> int:
    try:
        from bench.__main__ import main as bench
    except ImportError:
        raise SetupError("the benches live in a checkout: run `make bench` there") from None
    return bench([*arguments.name, *(["--quick"] if arguments.quick else [])])
