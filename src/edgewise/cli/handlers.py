"""Carry out each command of the command line.

One function per command; each imports what it needs when it is called, so that a small command
does not load Spark, Arrow or a server. Used by `parser`.
"""

from __future__ import annotations

import argparse
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from edgewise.errors import AppError, SetupError

if TYPE_CHECKING:  # a real import would load everything that a node needs
    from edgewise.node.config import NodeConfig
    from edgewise.node.isolation.isolated_pool import CallLimits

RETAIN_HOURS = 7 * 24
RETAIN_DISK_SHARE = 0.25  # of the disk, for all logs of an app


def run(arguments: argparse.Namespace) -> None:
    import dataclasses

    from edgewise.gateway.quotas import QuotaConfig
    from edgewise.log.api import LogConfig
    from edgewise.log.tail import parse_time
    from edgewise.node.run import run as run_node
    from edgewise.node.upkeep.archiver import ArchiveConfig

    age, size = arguments.archive_hours, arguments.archive_mb
    archive = ArchiveConfig(
        age_ms=None if age is None else int(age * 3_600_000),
        bytes_max=None if size is None else size * 1024 * 1024,
    )
    hours, megabytes = arguments.retain_hours, arguments.retain_mb
    bounded = not archive.wanted  # what is archived is meant to be kept
    if hours is None:
        hours = RETAIN_HOURS if bounded else 0
    log_config = LogConfig(
        retain_bytes=(megabytes or 0) * 1024 * 1024, retain_ms=int(hours * 3_600_000)
    )
    config = _build_config(arguments, arguments.app, arguments.data)
    run_node(
        dataclasses.replace(
            config,
            log=log_config,
            retain_disk_share=RETAIN_DISK_SHARE if megabytes is None and bounded else 0.0,
            archive=archive,
            quotas=QuotaConfig(
                arguments.events_per_second, int(arguments.mb_per_second * 1024 * 1024)
            ),
            edge_host=arguments.edge_host,
            edge_processes=arguments.edge_processes,
            standby=arguments.standby,
            watch=arguments.watch,
            start_ms=parse_time(arguments.start) if arguments.start else None,
            isolation=_read_isolation(arguments),
            **_build_shared(arguments),
        )
    )


def _read_isolation(arguments: argparse.Namespace) -> CallLimits | None:
    from edgewise.node.isolation.isolated_pool import CallLimits

    if not arguments.isolate:
        return None
    return CallLimits(arguments.call_ms, arguments.call_mb * 1024 * 1024)


def edge(arguments: argparse.Namespace) -> None:
    from edgewise.node.config import NodeConfig
    from edgewise.node.pages import add_page
    from edgewise.node.processes.edge_only import serve

    config = NodeConfig(
        app=arguments.app,
        data=arguments.data,
        host=arguments.host,
        edge_port=arguments.edge_port,
        **_build_shared(arguments),
    )
    serve(add_page(config))


def _build_shared(arguments: argparse.Namespace) -> dict[str, Any]:
    """Settings of `run` and `edge`: logs, extensions, access."""
    tls = (arguments.tls_cert, arguments.tls_key) if arguments.tls_cert else None
    return {
        "log_locations": tuple(arguments.log),
        "functions": tuple(arguments.functions),
        "jwt_key": arguments.jwt_key,
        "jwks": arguments.jwks,
        "oidc": arguments.oidc,
        "api_keys": arguments.api_keys,
        "jwt_skew_s": arguments.jwt_skew,
        "jwt_audience": arguments.jwt_audience,
        "jwt_issuer": arguments.jwt_issuer,
        "revoked": arguments.revoked,
        "origins": tuple(arguments.origin),
        "trusted_proxies": tuple(arguments.trusted_proxy),
        "tls": tls,
        "web": arguments.web,
    }


def demo(arguments: argparse.Namespace) -> None:
    from edgewise.node.run import DEMO_APP
    from edgewise.node.run import demo as run_demo

    run_demo(_build_config(arguments, DEMO_APP, Path()))


def _build_config(arguments: argparse.Namespace, app: Path, data: Path) -> NodeConfig:
    from edgewise.node.config import NodeConfig

    return NodeConfig(
        app=app,
        data=data,
        host=arguments.host,
        http_port=arguments.http_port,
        edge_port=arguments.edge_port,
        engine=arguments.engine,
        master=arguments.remote or arguments.master,
        spark_settings=tuple(arguments.conf),
        packages=tuple(arguments.packages),
        partitions=arguments.partitions,
        trigger_ms=arguments.trigger,
        save_interval_s=arguments.save_interval,
        stall_s=arguments.stall_seconds,
        state=arguments.state,
    )


def replay(arguments: argparse.Namespace) -> None:
    from edgewise.node.app.load import load
    from edgewise.node.commands.replay import encode_row, read_events
    from edgewise.node.commands.replay import replay as run_replay

    app = load(arguments.app, arguments.functions).app
    _check_replay_options(arguments, [s.name for s in app.outputs])
    if (limits := _read_isolation(arguments)) is not None:
        from edgewise.node.isolation.isolated_pool import isolate_functions

        isolate_functions(app, limits)
    options = {} if arguments.engine == "embedded" else {"master": arguments.master}
    with ExitStack() as stack:
        if arguments.data is None:
            events = read_events(stack.enter_context(_open(arguments.events)), app)
            rows = run_replay(app, events, arguments.engine, **options)
        else:
            from edgewise.log.tail import parse_time
            from edgewise.node.commands.replay_range import replay_range

            start, end = (parse_time(t) if t else None for t in (arguments.start, arguments.end))
            options |= {"start_ms": start, "end_ms": end}
            rows = replay_range(app, arguments.data, arguments.engine, **options)
        for row in rows:
            if not arguments.stream or row.stream in arguments.stream:
                sys.stdout.buffer.write(encode_row(row) + b"\n")
    sys.stdout.buffer.flush()


def _check_replay_options(arguments: argparse.Namespace, written: list[str]) -> None:
    """Options that would otherwise have no effect."""
    if arguments.data is None and (arguments.start or arguments.end):
        raise SetupError("--from and --to are for --data: a file is always read as a whole")
    for name in arguments.stream:
        if name not in written:
            known = ", ".join(written)
            raise SetupError(f"--stream {name}: the app writes no such stream; it writes {known}")


def _open(path: Path) -> BinaryIO:
    if str(path) == "-":
        return sys.stdin.buffer
    try:
        return path.open("rb")
    except OSError as error:
        raise SetupError(f"cannot read {path}: {error.strerror}") from None


def check(arguments: argparse.Namespace) -> None:
    from edgewise.node.app.load import load

    loaded = load(arguments.app, arguments.functions)
    for problem in loaded.warnings:
        print(AppError((problem,), loaded.text, loaded.file), file=sys.stderr)
    streams, queries = len(loaded.app.streams), len(loaded.app.queries)
    print(f"{arguments.app}: ok, {streams} streams, {queries} queries")


def explain(arguments: argparse.Namespace) -> None:
    from edgewise.node.app.load import load

    app = load(arguments.app, arguments.functions).app
    if arguments.code:
        from edgewise.kernel import compile_kernel
        from edgewise.plan.rules.chain import split_into_stages
        from edgewise.plan.rules.rewrite import rewrite

        app = rewrite(app)
        for fragment in split_into_stages(app):
            print(f"# fragment {fragment.name}\n{compile_kernel(app, fragment).source}")
        return
    from edgewise.node.app.declared_recovery import describe_recovery
    from edgewise.plan.explain import explain_json, explain_text
    from edgewise.plan.picture import explain_svg

    if arguments.format == "svg":
        print(explain_svg(app, describe_recovery(app)))
    else:
        print(
            {"text": explain_text, "json": explain_json}[arguments.format](
                app, describe_recovery(app)
            )
        )
    if arguments.format == "text":
        from edgewise.node.log_locations import LogLocations
        from edgewise.plan.stages import format_stages
        from edgewise.spark.choose import SparkConfig, explain_choices

        locations = LogLocations.parse(arguments.log, app)
        inputs = [locations.locate(s.name, Path()) for s in app.inputs]
        config = SparkConfig(partitions=arguments.partitions)
        config.validate()
        in_files = all("://" not in location for location in inputs)
        print("\n".join(format_stages(app, explain_choices(app, config, in_files=in_files))))
        if arguments.log:
            print("\n".join(locations.explain(app)))


def topology(arguments: argparse.Namespace) -> None:
    from edgewise.node.app.load import load
    from edgewise.plan.topology import build_topology, encode_topology, format_topology

    app = load(arguments.app, arguments.functions).app
    components = build_topology(app, arguments.partitions)
    if arguments.format == "json":
        print(encode_topology(app.name, components))
    else:
        print("\n".join(format_topology(app.name, components)))


def fmt(arguments: argparse.Namespace) -> int:
    from edgewise.lang import format_app

    with _open(arguments.app) as file:
        text = file.read().decode()
    formatted = format_app(text, str(arguments.app))
    if arguments.check:
        return int(formatted != text)
    if arguments.write and str(arguments.app) != "-":
        arguments.app.write_text(formatted)
    else:
        sys.stdout.write(formatted)
    return 0


def lsp(arguments: argparse.Namespace) -> None:
    if arguments.grammar:
        import json

        from edgewise.lsp.grammar import build_grammar

        print(json.dumps(build_grammar(), indent=2))
        return
    try:
        from edgewise.lsp.server import serve
    except ImportError:
        raise SetupError("the language server needs: pip install 'edgewise[lsp]'") from None
    serve(arguments.functions)


def query(arguments: argparse.Namespace) -> None:
    import json

    from edgewise.node.app import extensions
    from edgewise.node.app.load import load
    from edgewise.node.commands.query import answer_query
    from edgewise.node.data_dir import DataDirectory
    from edgewise.node.log_locations import LogLocations

    app = load(arguments.app, arguments.functions).app
    data_dir = DataDirectory(arguments.data, LogLocations.parse(tuple(arguments.log), app))
    functions = extensions.find(tuple(arguments.functions)).functions
    found = answer_query(app, arguments.query, data_dir.checkpoint(app.name), functions)
    for row in found.rows:
        print(json.dumps(dict(zip(found.columns, row, strict=True)), default=str))


def publish(arguments: argparse.Namespace) -> None:
    from edgewise.node.commands.publish_tail import publish as publish_lines

    with _open(arguments.events) as lines:
        accepted = publish_lines(
            arguments.url or ["http://127.0.0.1:8006"],
            arguments.stream,
            lines,
            _read_token(arguments),
            arguments.ca,
            producer=arguments.producer,
        )
    print(f"{accepted} events accepted")


def _read_token(arguments: argparse.Namespace) -> str:
    if not arguments.token_file:
        return ""
    with _open(arguments.token_file) as file:
        return file.read().decode().strip()


def tail(arguments: argparse.Namespace) -> None:
    from edgewise.node.commands.publish_tail import tail as tail_topics

    identity = (_read_token(arguments), arguments.ca)
    for line in tail_topics(arguments.url, arguments.selector, arguments.count, *identity):
        sys.stdout.buffer.write(line + b"\n")
        sys.stdout.buffer.flush()


def log(arguments: argparse.Namespace) -> int:
    from edgewise.log import commands

    parser = argparse.ArgumentParser(prog="edgewise log")
    commands.add_arguments(parser)
    rest = ["--help"] if arguments.help else arguments.rest
    return commands.run(parser.parse_args(rest))


def state(arguments: argparse.Namespace) -> None:
    from edgewise.node.commands.state import describe_state

    for line in describe_state(
        arguments.location, as_json=arguments.json, largest=arguments.largest
    ):
        print(line)


def key(arguments: argparse.Namespace) -> None:
    from edgewise.edge.access.api_keys import ApiKeyFile

    keys = ApiKeyFile(arguments.api_keys)
    if arguments.action == "list":
        for name, entry in keys.list_keys().items():
            granted = {k: v for k, v in entry.items() if k not in {"name", "sha256"}}
            print(name, *(f"{k}={','.join(map(str, v))}" for k, v in granted.items() if v))
    elif not arguments.name:
        raise SetupError(f"edgewise key {arguments.action} NAME: the name is missing")
    elif arguments.action == "revoke":
        keys.revoke(arguments.name)
        print(f"{arguments.name} is revoked")
    else:
        claims = {k: getattr(arguments, k) for k in ("ingest", "read", "publish", "request")}
        print(keys.add(arguments.name, claims))


def doctor(arguments: argparse.Namespace) -> int:
    from edgewise.node.commands.doctor import examine

    ports = (arguments.http_port, arguments.edge_port)
    found = list(examine(arguments.data, arguments.host, ports, arguments.engine))
    for diagnosis in found:
        print(diagnosis)
    return int(any(diagnosis.fix for diagnosis in found))


def bench(arguments: argparse.Namespace) -> int:
    try:
        from bench.__main__ import main as run_bench
    except ImportError:
        raise SetupError("the benches are in the repository: run `make bench` there") from None
    return run_bench([*arguments.name, *(["--quick"] if arguments.quick else [])])
