"""docs/reference/language.md: every example runs, every message is what the compiler prints."""

import re
from pathlib import Path

import pytest
from tests.lang.test_compiler import run

from edgewise.engines.embedded import InMemoryEngine
from edgewise.event.types import AttrType
from edgewise.lang import compile_app, format_app
from edgewise.plan.explain import explain_text
from edgewise.plan.exprs import Const, Field
from edgewise.plan.functions import FUNCTIONS
from edgewise.plan.processors import PROCESSORS
from edgewise.plan.windows import WINDOWS

VALUES = {
    AttrType.STRING: "a",
    AttrType.INT: 7,
    AttrType.LONG: 7,
    AttrType.FLOAT: 7.5,
    AttrType.DOUBLE: 7.5,
    AttrType.BOOL: True,
    AttrType.OBJECT: None,
}
PAGE = Path(__file__).parents[2] / "docs" / "reference" / "language.md"
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("place", [n for n, (kind, _) in enumerate(BLOCKS) if kind == "sql"])
def test_every_app_compiles_or_says_what_the_page_says(place):
    text = BLOCKS[place][1]
    following = BLOCKS[place + 1] if place + 1 < len(BLOCKS) else ("", "")
    if following[0] == "text":
        assert run(text) == following[1].rstrip("\n")
        return
    app = compile_app(text).app
    assert app.queries
    if following[0] == "plan":
        assert explain_text(app) == following[1].rstrip("\n")
    play(app)


def play(app):
    """An app that compiles also runs: some events of every input, then time passes."""
    engine = InMemoryEngine(app, start=0)
    for moment in range(1, 4):
        for stream in app.inputs:
            kinds = [a.type for a in stream.schema.attributes]
            engine.send(stream.name, moment * 1000, [VALUES[kind] for kind in kinds])
    engine.advance(3_600_000)
    assert all(event.stream for event in engine.take())


@pytest.mark.parametrize("place", [n for n, (kind, _) in enumerate(BLOCKS) if kind == "python"])
def test_every_program_runs(place, capsys):
    exec(compile(BLOCKS[place][1], str(PAGE), "exec"), {})
    capsys.readouterr()


def test_the_first_two_forms_are_one_plan(capsys):
    place = next(
        n for n, (_, text) in enumerate(BLOCKS) if "from edgewise import col, count" in text
    )
    space = {}
    exec(BLOCKS[place][1], space)
    capsys.readouterr()
    written = compile_app(BLOCKS[place - 1][1]).app
    assert space["app"].streams == written.streams
    mine, its = space["app"].queries[0], written.queries[0]
    assert (mine.input, mine.select, mine.output) == (its.input, its.select, its.output)


@pytest.mark.parametrize("place", [n for n, (kind, _) in enumerate(BLOCKS) if kind == "sql"])
def test_examples_can_be_formatted(place):
    assert format_app(format_app(BLOCKS[place][1])) == format_app(BLOCKS[place][1])


def windows():
    rows = ["| window | keeps |", "|---|---|"]
    bounds = {"time": "by time", "events": "by number", "": "as long as its condition says"}
    for spec in WINDOWS.values():
        shapes = [
            f"`{spec.name}({', '.join(p.name for p in params)}"
            + (f", {spec.repeats[0].name}...`" if spec.repeats else "")
            + ")`"
            for params in spec.overloads
        ]
        kind = "a batch at a time, " if spec.batch else ""
        rows.append(f"| {' '.join(shapes)} | {kind}{bounds[spec.bounded]} |")
    return "\n".join(rows).replace("`)`", ")`")


def functions():
    groups = {}
    for function in FUNCTIONS.values():
        space = "aggregates" if function.aggregate else function.name.rpartition(":")[0]
        groups.setdefault(space or "plain", []).append(function)
    rows = ["| functions | |", "|---|---|"]
    for space, found in groups.items():
        rows.append(f"| {space} | {' '.join(f'`{signature(f)}`' for f in found)} |")
    return "\n".join(rows)


def processors():
    rows = ["| processor | adds |", "|---|---|"]
    for row in PROCESSORS:
        shape = row.overloads[-1]
        kinds_of = [min(types, key=lambda t: t.value) for types in shape]
        args = (*(Field(kind, "s", "a") for kind in kinds_of[:-1]), Const(kinds_of[-1], 1))
        args = args if "K" in row.name else tuple(Field(kind, "s", "a") for kind in kinds_of)
        added = ", ".join(f"`{a.name}`" for a in row.adds(args)) or "nothing"
        rows.append(f"| `{row.usage.removeprefix('write ')}` | {added} |")
    return "\n".join(rows)


def signature(function):
    if function.shapes:
        shapes = (", ".join(map(kinds, shape)) for shape in function.shapes)
        return "` `".join(f"{function.name}({shape})" for shape in shapes)
    args = [kinds(types) for types in function.takes]
    least = len(args) - function.optional
    shown = ", ".join(args[:least] + [f"[{a}]" for a in args[least:]])
    return f"{function.name}({shown}{'...' if function.variadic else ''})"


def kinds(types):
    if types == frozenset(AttrType):
        return "any"
    if len(types) == 1:
        return next(iter(types)).value
    if types == frozenset({AttrType.INT, AttrType.LONG}):
        return "whole"
    return "number" if AttrType.STRING not in types else "value"


def test_the_tables_are_those_of_the_compiler(generated_block):
    generated_block(PAGE, "windows", windows())
    generated_block(PAGE, "functions", functions())
    generated_block(PAGE, "processors", processors())
