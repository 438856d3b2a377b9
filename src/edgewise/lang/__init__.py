"""SiddhiQL text to typed plan, with errors a person can act on."""

from edgewise.lang.compiler import Compiled, compile_app, compile_query

__all__ = ["Compiled", "compile_app", "compile_query"]
