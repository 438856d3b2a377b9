"""One client's conversation. Pure."""
