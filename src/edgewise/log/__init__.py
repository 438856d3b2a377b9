"""Append, read, tail: an ordered, durable, replayable stream with offsets."""
