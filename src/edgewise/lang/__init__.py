"""Compile SiddhiQL text to a typed plan, with errors a person can act on."""

from edgewise.lang.compiler import Compiled, compile_app, compile_query
from edgewise.lang.layout import format_app

__all__ = ["Compiled", "compile_app", "compile_query", "format_app"]
