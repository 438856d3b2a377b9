"""Connect to an edge from Python: an async client, and a sync one around it."""
