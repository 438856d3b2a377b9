"""Decide who may connect and what each may do."""
