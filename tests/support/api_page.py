"""Write the reference of the public API from its docstrings, as Markdown.

`tests/docs/test_reference.py` compares the page with it. Docstrings keep to plain text with
backticks; an indented paragraph in them is code.
"""

import inspect
import re
import textwrap
from collections.abc import Iterator
from importlib import import_module
from types import ModuleType
from typing import Any

MODULES = ("edgewise", "edgewise.eep", "edgewise.client.aio")


def render_api() -> str:
    return "\n".join(line for name in MODULES for line in _module(import_module(name)))


def public_names(module: ModuleType) -> list[str]:
    """`__all__`, or what the module defines itself."""
    names = getattr(module, "__all__", None) or [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", "") == module.__name__
    ]
    return sorted((n for n in names if not n.startswith("_")), key=str.lower)


def _module(module: ModuleType) -> Iterator[str]:
    yield from (f"## `{module.__name__}`", "")
    yield from _prose(module)
    for name in public_names(module):
        value = getattr(module, name)
        if not inspect.ismodule(value):
            yield from _member(name, value)


def _member(name: str, value: Any) -> Iterator[str]:
    yield from (f"### `{name}{_signature(value)}`", "")
    if not (callable(value) or inspect.isclass(value)):
        value = type(value)
    yield from _prose(value)
    if inspect.isclass(value):
        inherited = {name for base in value.__mro__[1:] for name in vars(base)}
        for inner, method in vars(value).items():
            if not inner.startswith("_") and inner not in inherited:
                yield from _method(inner, method)


def _method(name: str, method: Any) -> Iterator[str]:
    function = getattr(method, "__func__", method)
    if isinstance(method, property):
        function = method.fget
    if inspect.isfunction(function):
        shown = "" if isinstance(method, property) else _signature(function)
        about = " ".join((inspect.cleandoc(function.__doc__ or "")).split("\n\n")[0].split())
        yield f"- `{name}{shown}`" + (f": {about}" if about else "")
        yield ""


def _signature(value: Any) -> str:
    if not callable(value) or (inspect.isclass(value) and issubclass(value, BaseException)):
        return ""
    try:
        found = inspect.signature(value)
    except (TypeError, ValueError):
        return ""
    kept = [
        p.replace(annotation=inspect.Parameter.empty, default=_plain(p.default))
        for name, p in found.parameters.items()
        if name not in {"self", "cls"}
    ]
    return str(found.replace(parameters=kept, return_annotation=inspect.Signature.empty))


class _Shown:
    """Something whose `repr` would hold an address."""

    def __repr__(self) -> str:
        return "..."


def _plain(default: Any) -> Any:
    return _Shown() if " at 0x" in repr(default) else default


def _prose(value: Any) -> Iterator[str]:
    """The docstring; indented paragraphs and examples become fenced code."""
    text = value.__doc__ or ""
    if not inspect.ismodule(value):  # the text of a module is not indented, but its code is
        text = inspect.cleandoc(text)
    for paragraph in re.split(r"\n\n(?=\S)|(?<=\S)\n\n(?=    )", text):
        lines = paragraph.strip("\n")
        if lines.startswith(("    ", ">>> ")):
            code = textwrap.dedent(lines)
            run = code.startswith(">>>")
            yield from ([] if run else ["<!-- shown: an outline from a docstring -->"])
            yield from (f"```{'python' if run else 'text'}", code, "```", "")
        elif lines:
            yield from (lines, "")
