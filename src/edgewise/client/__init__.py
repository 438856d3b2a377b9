"""Python client, sync and async shells over wire."""
