"""Load an app, and read what its annotations declare beside the queries."""
