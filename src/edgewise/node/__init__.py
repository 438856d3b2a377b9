"""Composition: what runs in this process."""
