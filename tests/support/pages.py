"""Find the code of the documentation pages and run it as a reader would.

A page is run from top to bottom in an empty folder:

    sql      checked by `edgewise check`; a `text` block below it is what that prints
    python   run by itself; with `>>>` as doctests that share their names on the page
    sh       run by bash; a `text` block below it is what that prints, `...` stands for anything.
             `edgewise run` and `edgewise edge` stay running to the end of the page. Commands
             that only read are repeated until they print what the page says: a node needs a moment
    json, toml   parsed

Where the line above a block ends in a file name and a colon ("Save this as `app.siddhi`:"), the
block is also written to that file. A block below `<!-- shown: REASON -->` is written, not run.
"""

import contextlib
import doctest
import io
import json
import os
import re
import subprocess
import sys
import time
import tomllib
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from tests.support.brokers import free_port
from tests.support.program import Program

from edgewise.cli import main

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *DOCS.rglob("*.md")])
FENCE = re.compile(r"^( *)```([^\n`]*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
SHOWN = re.compile(r"<!-- shown: ([^\n]+) -->\s*\Z")
NAMED = re.compile(r"`([\w./-]+\.\w+)`:\s*\Z")
READS = ("edgewise tail", "edgewise log", "curl -s http", "python watch")
COMMAND_S = 60
REPEAT_S = 20
START_S = 60
QUERY = "define stream Aux (x int);\nfrom Aux select x insert into AuxOut;\n"
LIKE = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block. `file` is the name the text above gives it, `shown` why it is not run."""

    page: Path
    line: int
    language: str
    text: str
    file: str = ""
    shown: str = ""

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def find_blocks(page: Path) -> list[Block]:
    text = page.read_text()
    blocks = []
    for found in FENCE.finditer(text):
        before = text[: found.start()]
        shown = SHOWN.search(before)
        named = NAMED.search(SHOWN.sub("", before))
        blocks.append(
            Block(
                page,
                before.count("\n") + 1,
                (found[2].split() or [""])[0],
                found[3],
                named[1] if named else "",
                shown[1] if shown else "",
            )
        )
    return blocks


class Reader:
    """Runs the blocks of one page in order. Nodes get free ports in place of the usual ones."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._ports = {usual: str(free_port()) for usual in ("8006", "8008", "8009")}
        self._names: dict[str, object] = {}
        self._running = ExitStack()
        self._output: str | None = None  # of the last command, until a text block compares it
        self._repeat: Block | None = None  # the last block, if it only reads

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._running.close()

    def run(self, block: Block) -> None:
        if block.file:
            path = self.folder / block.file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(self._with_ports(block.text))
        if block.shown:
            return
        if block.language == "text":
            self._compare(block)
            return
        self._output, self._repeat = None, None
        match block.language:
            case "sql":
                self._output = self._check(block)
            case "python":
                self._output = self._python(block)
            case "sh":
                lines = block.text.splitlines()
                self._repeat = block if all(line.startswith(READS) for line in lines) else None
                self._output = self._shell(block)
            case "json":
                for line in block.text.splitlines() if block.file else [block.text]:
                    json.loads(line)
            case "toml":
                tomllib.loads(block.text)

    def _compare(self, block: Block) -> None:
        assert self._output is not None, f"{block}: a text block with no command above it"
        check, deadline_s = doctest.OutputChecker().check_output, time.monotonic() + REPEAT_S
        while not check(block.text, got := self._without_ports(self._output), LIKE):
            repeat = self._repeat is not None and time.monotonic() < deadline_s
            assert repeat, f"{block}: it printed\n{got}"
            self._output = self._shell(self._repeat)
        self._output = None

    def _check(self, block: Block) -> str:
        text = block.text if re.search(r"^\s*from ", block.text, re.MULTILINE) else None
        path = self.folder / (block.file or "app.siddhi")
        path.write_text(text or f"{block.text}\n{QUERY}")
        printed = io.StringIO()
        with contextlib.redirect_stderr(printed), contextlib.redirect_stdout(io.StringIO()):
            main(["check", path.name])
        if text is None and block.file:
            path.write_text(block.text)
        return printed.getvalue()

    def _python(self, block: Block) -> str:
        code = self._with_ports(block.text)
        if ">>> " in code:
            test = doctest.DocTestParser().get_doctest(
                code, self._names, str(block), str(block.page), block.line
            )
            failed, _ = doctest.DocTestRunner(verbose=False).run(test, clear_globs=False)
            self._names.update(test.globs)
            assert not failed, f"{block}: see above"
            return ""
        program = compile(code, str(block), "exec")
        printed = io.StringIO()
        if not block.file:  # a file is run by a command of the page
            with contextlib.redirect_stdout(printed):
                exec(program, {"__name__": "__main__"})
        return printed.getvalue()

    def _shell(self, block: Block) -> str:
        printed = ""
        for command in re.sub(r"\\\n\s*", "", block.text).splitlines():
            words = command.split()
            if words[:2] in (["edgewise", "run"], ["edgewise", "edge"]):
                printed += self._start(command, words)
            elif words:
                printed += self._call(self._complete(command, words), block)
        return printed

    def _start(self, command: str, words: list[str]) -> str:
        """A node that runs until the page ends. Answers what it printed when it was ready."""
        given = self._with_ports(re.sub(r"\s+#.*$", "", command)).split()[1:]
        edge_only = words[1] == "edge"
        if "--edge-port" not in given:
            given += ["--edge-port", self._ports["8009" if edge_only else "8008"]]
        if not edge_only and "--http-port" not in given:
            given += ["--http-port", self._ports["8006"]]
        start = Program.start(*given, home=self.folder)
        program = self._running.enter_context(start)
        program.wait_for_line("edge +http" if edge_only else "engine running|standing by", START_S)
        return program.said

    def _complete(self, command: str, words: list[str]) -> str:
        if words[0] == "edgewise" and words[1] in {"publish", "tail"} and "--url" not in words:
            where = "http://127.0.0.1:8006" if words[1] == "publish" else "ws://127.0.0.1:8008/ws"
            command = f"{command} --url {where}"
        return self._with_ports(command)

    def _call(self, command: str, block: Block) -> str:
        place = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "HOME": "/"}
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=self.folder,
            env={**os.environ, **place, "PYTHONPATH": f"{ROOT / 'src'}:{self.folder}"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=COMMAND_S,
            text=True,
            check=False,
        )
        fails = "error" in done.stdout  # a page may show how something is refused
        assert done.returncode == 0 or fails, f"{block}: {command}\n{done.stdout}"
        return done.stdout

    def _with_ports(self, text: str) -> str:
        for usual, free in self._ports.items():
            text = re.sub(rf"\b{usual}\b", free, text)
        return text

    def _without_ports(self, text: str) -> str:
        for usual, free in self._ports.items():
            text = re.sub(rf"\b{free}\b", usual, text)
        return text
