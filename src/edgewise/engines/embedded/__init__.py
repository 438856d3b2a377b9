"""Event at a time, in process: the executable reference of the language."""
