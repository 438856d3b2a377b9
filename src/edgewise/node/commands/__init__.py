"""Carry out the commands of the CLI that are not a node."""
