"""The client protocol, sans-I/O, both sides. SPEC.md is the law."""
