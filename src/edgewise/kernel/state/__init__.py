"""The state of a kernel: saved, restored, and carried to a changed plan."""
