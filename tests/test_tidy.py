"""Style as a test: few rules, so they are kept. The numbers come from codebases we admire."""

import ast
import re
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SRC = ROOT / "src" / "edgewise"
MODULES = sorted(SRC.rglob("*.py"))
CODE = [*MODULES, *sorted((ROOT / "tests").rglob("*.py")), *sorted((ROOT / "bench").rglob("*.py"))]

FILE_LINES_MAX = 400
FUNCTION_LINES_MAX = 70
DEPTH_MAX = 3
BANNED = {"utils", "util", "helpers", "helper", "common", "misc", "manager", "base", "core", "v2"}
# Modules that hold only declarations or docstrings, or are proven by a room-wide suite.
NO_TWIN = {"__init__", "__main__", "api"}


def relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", MODULES, ids=relative)
def test_a_module_opens_with_what_lives_here(path):
    assert ast.get_docstring(ast.parse(path.read_text())), f"{relative(path)} has no docstring"


@pytest.mark.parametrize("path", CODE, ids=relative)
def test_files_and_functions_stay_short(path):
    text = path.read_text()
    assert len(text.splitlines()) <= FILE_LINES_MAX, relative(path)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = (
                node.body[1] if len(node.body) > 1 and ast.get_docstring(node) else node.body[0]
            )
            length = node.end_lineno - first.lineno + 1
            assert length <= FUNCTION_LINES_MAX, (
                f"{relative(path)}: {node.name} has {length} lines"
            )


@pytest.mark.parametrize("path", MODULES, ids=relative)
def test_names_and_depth(path):
    assert path.stem not in BANNED, relative(path)
    assert len(path.relative_to(SRC).parts) <= DEPTH_MAX, relative(path)


@pytest.mark.parametrize("path", MODULES, ids=relative)
def test_each_module_has_its_test_file(path):
    only_a_docstring = len(ast.parse(path.read_text()).body) <= 1
    if path.stem in NO_TWIN or only_a_docstring:
        return
    inside = path.relative_to(SRC)
    twin = ROOT / "tests" / inside.parent / f"test_{inside.name}"
    assert twin.exists(), f"{relative(path)} has no {relative(twin)}"


def public_classes():
    """Where each public class name is defined. Syntax and plan mirror each other on purpose."""
    found = defaultdict(list)
    for path in MODULES:
        inside = path.relative_to(SRC)
        if inside.parts[0] != "plan" and inside.parts[:2] != ("lang", "syntax"):
            for node in ast.parse(path.read_text()).body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    found[node.name].append(str(inside))
    return found


def test_a_public_class_name_stands_for_one_thing():
    shared = {name: files for name, files in public_classes().items() if len(files) > 1}
    assert not shared, "rename one of each; docs/GLOSSARY.md has the words"


@pytest.mark.parametrize(
    "path", [*ROOT.glob("*.md"), *sorted((ROOT / "docs").rglob("*.md"))], ids=relative
)
def test_every_path_named_in_the_docs_exists(path):
    text = path.read_text()
    linked = re.findall(r"\]\((?!https?:|#|mailto:)([^)#\s]+)", text)
    for target in linked:
        assert (path.parent / target).exists(), f"{relative(path)} links to {target}"
    for label, target in re.findall(r"\[([\w.]+\.(?:py|js|ts))\]\(([^)]+)\)", text):
        assert Path(target).name == label, f"{relative(path)} calls {target} {label}"
    quoted = re.findall(r"`((?:src|tests|bench|docs|web|clients|scripts)/[\w./-]+)`", text)
    for target in quoted:
        assert (ROOT / target).exists(), f"{relative(path)} names {target}"
