"""Run apps in this process: in memory (`in_memory`), or over logs with saved state (`engine`)."""

from edgewise.engines.embedded.in_memory import InMemoryEngine

__all__ = ["InMemoryEngine"]
