"""The reference pages say what the code says: metrics, annotations, commands, public names.

`make pages` (pytest --rewrite-golden) writes the generated parts anew.
"""

import argparse
import asyncio
import inspect
import re
import urllib.request
from functools import partial

from tests.support.api_page import render_api
from tests.support.pages import DOCS, ROOT

from edgewise.cli.parser import build_parser
from edgewise.edge.config import EdgeConfig
from edgewise.edge.server.server import Edge
from edgewise.gateway.stats import render_prometheus
from edgewise.ha.fsm import Role
from edgewise.ha.status import RoleStatus, format_metrics
from edgewise.lang.lower.known_annotations import TARGETS
from edgewise.log import commands as log_commands
from edgewise.node.upkeep import archiver
from edgewise.node.upkeep.metrics import BY_NAME, GAUGES, render_engine_metrics

REFERENCE = DOCS / "reference"
WAIT_S = 10
WRITERS = {  # what the functions below render
    "edge/metrics/telemetry.py",
    "edge/server/routes.py",
    "gateway/stats.py",
    "ha/status.py",
    "node/upkeep/archiver.py",
    "node/upkeep/metrics.py",
}


def printed(text):
    """Each metric of Prometheus' text format with its kind."""
    return set(re.findall(r"^# TYPE (\S+) (\w+)$", text, re.MULTILINE))


def engine_text():
    """All that an engine can report, as if everything were known."""
    progress = {key: 1 for _, key, _ in GAUGES} | {key: {"a": 1} for _, key, _, _ in BY_NAME}
    return render_engine_metrics(progress | {"batch_ms": {"trigger": 1}})


def edge_text():
    async def scrape():
        edge = Edge(EdgeConfig())
        port = await edge.start()
        get = partial(urllib.request.urlopen, timeout=WAIT_S)
        answer = await asyncio.to_thread(get, f"http://127.0.0.1:{port}/metrics")
        with answer:
            text = await asyncio.to_thread(answer.read)
        await edge.stop()
        return text.decode()

    return asyncio.run(scrape())


def archive_text():
    source = inspect.getsource(archiver)
    assert "edgewise_log_archived_{name}_total" in source
    return "".join(
        f"# TYPE edgewise_log_archived_{name}_total counter\n"
        for name in ("ledgers", "bytes", "failures")
    )


def test_metrics_are_written_by_the_modules_rendered_here():
    source = ROOT / "src" / "edgewise"
    found = {path for path in source.rglob("*.py") if "# TYPE " in path.read_text()}
    assert {str(path.relative_to(source)) for path in found} == WRITERS


def test_the_metrics_page_has_every_metric_and_no_other():
    page = (REFERENCE / "metrics.md").read_text()
    documented = set(re.findall(r"^\| `(\w+)` \| (\w+) \| \S", page, re.MULTILINE))
    text = render_prometheus({}) + engine_text() + archive_text() + edge_text()
    text += format_metrics(RoleStatus(Role.ACTIVE, 1, 0, "host"))
    missing, extra = printed(text) - documented, documented - printed(text)
    assert not missing, "add them to docs/reference/metrics.md"
    assert not extra, "no code prints them: remove them from docs/reference/metrics.md"


def test_the_annotations_page_has_every_annotation_where_it_belongs():
    page = (REFERENCE / "annotations.md").read_text()
    documented = {}
    for names, targets in re.findall(r"^\| (`@.*?) \| (.*?) \| \S", page, re.MULTILINE):
        for name in re.findall(r"`@([\w:]+)`", names):
            inside = targets.startswith("inside")
            documented[name.lower()] = frozenset() if inside else frozenset(targets.split(", "))
    assert documented == TARGETS


def describe_parser(parser, name):
    """One command as Markdown: its help and a table of its arguments."""
    lines = [f"## `{name}`", "", sentence(parser.description), ""]
    rows = [describe_argument(a) for a in parser._actions if not skipped(a)]
    if rows:
        lines += ["| argument | default | meaning |", "|---|---|---|", *rows, ""]
    return lines


def sentence(text):
    text = (text or "").strip().rstrip(".")
    return f"{text[:1].upper()}{text[1:]}." if text else ""


def skipped(action):
    return isinstance(action, argparse._HelpAction | argparse._SubParsersAction)


def describe_argument(action):
    words = ", ".join(action.option_strings) or action.metavar or action.dest
    choices = "{" + ",".join(map(str, action.choices)) + "}" if action.choices else ""
    if action.option_strings and action.nargs != 0:
        words = f"{words} {action.metavar or choices or action.dest.upper()}"
    elif choices:
        words = choices
    none = action.default is None or action.default in ([], "", argparse.SUPPRESS)
    shown = action.option_strings and action.nargs != 0 and not none
    default = f"`{action.default}`" if shown else ""
    meaning = (action.help or "").replace("|", "\\|")
    return f"| `{words}` | {default} | {meaning} |"


def subparsers(parser):
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            helps = {choice.dest: choice.help for choice in action._choices_actions}
            for name, below in action.choices.items():
                below.description = below.description or helps.get(name, "")
                yield name, below


def all_commands():
    for name, parser in subparsers(build_parser()):
        if name == "log":
            log = argparse.ArgumentParser(prog="edgewise log")
            log_commands.add_arguments(log)
            log.description = parser.description
            yield f"edgewise {name}", log
            for below, inner in subparsers(log):
                yield f"edgewise {name} {below}", inner
        else:
            yield f"edgewise {name}", parser


def test_the_cli_page_is_up_to_date(generated_block):
    lines = []
    for name, parser in all_commands():
        lines += describe_parser(parser, name)
    generated_block(REFERENCE / "cli.md", "commands", "\n".join(lines))


def test_the_api_page_is_up_to_date(generated_block):
    generated_block(REFERENCE / "api.md", "api", render_api())
