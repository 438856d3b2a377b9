"""Rewrite rules and what is found out about a plan: one rule, one file, one fixture."""
