"""Bytes from the world into the log."""
