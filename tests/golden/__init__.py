"""Golden scripts: scenarios as text that an operator can read.

    # a comment says what the scenario shows
    a command, one or more lines
    ----
    what it prints

A blank line ends the output; one that holds blank lines itself stands between two `----` pairs.
`golden(path, run)` (the fixture in tests/conftest.py) feeds each command to `run` and compares;
`pytest --rewrite-golden` writes down what came out instead. Commit such a change only when you
understand what caused it.

    @pytest.mark.parametrize("path", scripts("ha"), ids=lambda path: path.stem)
    def test_scripts(golden, path):
        golden(path, Scenario().run)
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

HERE = Path(__file__).parent
RULE = "----"


@dataclass(frozen=True, slots=True)
class Case:
    """`comment` keeps its `#` lines and blank lines, so that a rewrite leaves them alone."""

    comment: str
    command: str
    output: str


def scripts(room: str) -> list[Path]:
    found = sorted((HERE / room).glob("*.txt"))
    assert found, f"no golden scripts in {HERE / room}"
    return found


def parse(text: str) -> list[Case]:
    cases: list[Case] = []
    comment: list[str] = []
    command: list[str] = []
    lines = iter(text.splitlines())
    for line in lines:
        if line == RULE:
            assert command, f"a '{RULE}' without a command before it"
            output = _output(lines)
            cases.append(Case("\n".join(comment), "\n".join(command), output))
            comment, command = [], []
        elif not command and (not line.strip() or line.startswith("#")):
            comment.append(line)
        else:
            command.append(line)
    assert not command, f"a command without '{RULE}' after it: {command[0]}"
    return cases


def _output(lines) -> str:
    first = next(lines, "")
    if first == RULE:
        body = "\n".join(iter(lambda: next(lines), RULE))
        assert next(lines, "") == RULE, f"one '{RULE}' too few after: {body}"
        assert not next(lines, ""), f"no blank line after the output: {body}"
        return body
    rest = iter(lambda: next(lines, ""), "")
    return "\n".join([first, *rest]) if first else ""


def render(cases: list[Case]) -> str:
    return "\n".join(_render_one(case) for case in cases)


def _render_one(case: Case) -> str:
    head = f"{case.comment}\n" if case.comment else ""
    blank_inside = "" in case.output.split("\n") and case.output
    body = f"{RULE}\n{case.output}\n{RULE}\n{RULE}" if blank_inside else case.output
    return f"{head}{case.command}\n{RULE}\n{body}\n" if body else f"{head}{case.command}\n{RULE}\n"


def check(path: Path, run: Callable[[str], str], *, rewrite: bool) -> None:
    before = path.read_text()
    cases = [replace(case, output=run(case.command).rstrip("\n")) for case in parse(before)]
    agree(path, before, render(cases), rewrite=rewrite)


def check_block(path: Path, name: str, text: str, *, rewrite: bool) -> None:
    """The part of a page between `<!-- NAME, generated -->` and `<!-- end -->` is `text`."""
    before = path.read_text()
    opening = f"<!-- {name}, generated -->\n"
    assert opening in before, f"{path} has no line {opening}"
    head, rest = before.split(opening, 1)
    _, tail = rest.split("<!-- end -->", 1)
    after = f"{head}{opening}{text.rstrip()}\n<!-- end -->{tail}"
    agree(path, before, after, rewrite=rewrite)


def agree(path: Path, before: str, after: str, *, rewrite: bool) -> None:
    if rewrite and after != before:
        path.write_text(after)
    elif not rewrite:
        assert after == before, f"{path} differs; look, then run pytest --rewrite-golden"
