"""Windows, patterns, tables and rate limits: what generated code calls at run time."""
