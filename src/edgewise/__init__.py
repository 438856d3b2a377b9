"""Edgewise carries events from where they happen to the people who watch."""

__version__ = "0.1.0"
