"""Decode, check against the schema, stamp: pure."""
