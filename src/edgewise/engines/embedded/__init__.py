"""Event at a time, in process: the executable reference of the language."""

from edgewise.engines.embedded.engine import Embedded

__all__ = ["Embedded"]
