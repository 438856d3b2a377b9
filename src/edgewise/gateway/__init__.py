"""Bring events from outside into logs (sources) and rows of logs to the outside (sinks)."""
