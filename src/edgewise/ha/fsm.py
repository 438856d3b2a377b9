"""Roles of a node and the only ways to change them."""
