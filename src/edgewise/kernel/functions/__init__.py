"""The scalar functions that generated code calls."""
