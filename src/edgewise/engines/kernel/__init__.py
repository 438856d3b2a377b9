"""A fragment of a plan as generated straight-line Python; both engines run it. Pure."""
