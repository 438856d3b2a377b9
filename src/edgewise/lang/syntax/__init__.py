"""The tree of an app as its author wrote it. Frozen; equal trees mean the same app."""
