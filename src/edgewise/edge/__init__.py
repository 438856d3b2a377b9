"""Serve topics to clients: topic tree, sessions, conflation, transports."""
