"""Rewrite rules, one file each; their order is the tuple in each caller."""
