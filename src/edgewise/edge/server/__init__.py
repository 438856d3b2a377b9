"""Run the edge as a server: connections, routes, flushing, feeds."""
