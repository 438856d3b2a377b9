"""Topics, sessions, conflation, transports: the last mile."""
