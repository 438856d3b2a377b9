"""Run an app as a node: sources, log, engine and edge, with a standby that takes over."""
