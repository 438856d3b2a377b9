"""Define the client protocol for both sides, without I/O; SPEC.md specifies it."""
