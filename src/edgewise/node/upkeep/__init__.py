"""Do what a node does beside its app: archive, idle ticks, metrics."""
