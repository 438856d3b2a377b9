"""Start, supervise and be the processes of a node."""
