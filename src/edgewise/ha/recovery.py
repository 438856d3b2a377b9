"""What a node must replay before it serves."""
