"""Declare what commands share: the form of their help, and options of apps, logs and nodes.

An option has one name, default and sentence, whichever command takes it. Used by `parser`.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    Parsers = argparse._SubParsersAction[argparse.ArgumentParser]  # noqa: SLF001  no public name


class HelpFormatter(argparse.ArgumentDefaultsHelpFormatter, argparse.RawDescriptionHelpFormatter):
    """Shows the default of every option, in words where it is empty, and keeps examples."""

    def _get_help_string(self, action: argparse.Action) -> str | None:
        text = action.help or ""
        if not action.option_strings or action.default is argparse.SUPPRESS:
            return text
        if action.required or "(default" in text:
            return text
        if action.default is False:
            return f"{text} (default: off)"
        if action.default in (None, "", []):
            return f"{text} (default: none)"
        return super()._get_help_string(action)


def add_command(
    commands: Parsers, name: str, summary: str, example: str
) -> argparse.ArgumentParser:
    return commands.add_parser(
        name,
        help=summary,
        description=f"{summary[0].upper()}{summary[1:]}.",
        epilog=f"example:\n  {example}",
        formatter_class=HelpFormatter,
    )


def add_app(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("app", type=Path, help="a SiddhiQL file")
    add_functions(parser)


def add_functions(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--functions",
        action="append",
        default=[],
        metavar="MODULE",
        help="functions of your own: module, module:name or file.py; may be repeated",
    )


def add_app_and_logs(parser: argparse.ArgumentParser) -> None:
    add_app(parser)
    parser.add_argument("--data", type=Path, default=Path("edgewise-data"), help="data directory")
    add_log_locations(parser)


def add_log_locations(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--log",
        action="append",
        default=[],
        metavar="[STREAM=]LOCATION",
        help="a directory or kafka://host:port/topic for all logs or for one; may be repeated "
        "(default: the data directory)",
    )


def add_access(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--jwt-key",
        type=Path,
        help="file with a secret, a PEM public key or a JWKS: callers need tokens",
    )
    parser.add_argument("--jwks", default="", help="URL of the public keys of tokens (JWKS)")
    parser.add_argument("--oidc", default="", help="URL of an OpenID provider: its keys are used")
    parser.add_argument(
        "--api-keys", type=Path, help="file of API keys of machines, as `edgewise key` makes it"
    )
    parser.add_argument(
        "--jwt-skew", type=int, default=5, help="seconds that clocks of token makers may differ"
    )
    parser.add_argument("--jwt-audience", default="", help="claim 'aud' that tokens must have")
    parser.add_argument("--jwt-issuer", default="", help="claim 'iss' that tokens must have")
    parser.add_argument(
        "--revoked", type=Path, help="file of principals whose tokens are no longer valid"
    )
    parser.add_argument(
        "--origin",
        action="append",
        default=[],
        help="origin of pages on other hosts that may connect; may be repeated",
    )
    parser.add_argument(
        "--trusted-proxy",
        action="append",
        default=[],
        help="address or network of a reverse proxy to believe; may be repeated",
    )
    parser.add_argument("--tls-cert", type=Path, help="certificate chain in PEM")
    parser.add_argument("--tls-key", type=Path, help="key of the certificate in PEM")
    parser.add_argument(
        "--web",
        type=Path,
        metavar="DIR",
        help="directory of your own page at / (default: a page made from the topic sinks)",
    )


def add_engine(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--engine", choices=("spark", "embedded"), default="spark", help="what runs the queries"
    )


def add_host(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--host", default="127.0.0.1", help="address to listen on; off loopback it needs --jwt-key"
    )


def add_node_options(parser: argparse.ArgumentParser) -> None:
    add_host(parser)
    parser.add_argument(
        "--http-port", type=int, default=8006, help="port of ingest; 0 takes a free one"
    )
    parser.add_argument(
        "--edge-port",
        type=int,
        default=8008,
        help="port of the page and of clients; 0 takes a free one",
    )
    add_master(parser)
    add_spark_settings(parser)
    add_partitions(parser)
    parser.add_argument(
        "--trigger", type=int, default=0, help="ms between micro-batches; 0: without a pause"
    )
    parser.add_argument(
        "--save-interval",
        type=float,
        default=10.0,
        metavar="SECONDS",
        help="between saves of state; a restart reads again what came since the last one",
    )
    parser.add_argument(
        "--stall-seconds",
        type=float,
        default=30.0,
        help="an engine that does not move on for so long is not healthy (/readyz, $sys/health)",
    )
    parser.add_argument(
        "--state",
        default="",
        help="path or URI of kernel state (default: with the checkpoint); on a cluster a URI "
        "that every executor reaches",
    )


def add_isolation(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--isolate",
        action="store_true",
        help="run functions that the app defines in processes without files and network",
    )
    parser.add_argument(
        "--call-ms", type=int, default=1_000, help="with --isolate: the longest time of one call"
    )
    parser.add_argument(
        "--call-mb", type=int, default=256, help="with --isolate: the most memory of a function"
    )


def add_partitions(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--partitions", type=int, default=2, help="key partitions, on Spark")


def add_master(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--master", default="local[*]", help="Spark master")


def add_spark_settings(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--conf",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="setting of Spark, such as spark.driver.host=10.0.0.1; may be repeated",
    )
    parser.add_argument(
        "--packages",
        action="append",
        default=[],
        metavar="GROUP:NAME:VERSION",
        help="Maven packages for Spark's JVMs; may be repeated",
    )
    parser.add_argument(
        "--remote", default="", help="Spark Connect server: refused, with what to use instead"
    )


def add_identity(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--token-file", type=Path, help="file with a JWT, if the node needs one")
    parser.add_argument("--ca", type=Path, help="certificate authority in PEM, for TLS")
