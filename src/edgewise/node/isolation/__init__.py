"""Run code that the operator did not write in processes of its own, within limits."""
