"""One script per claim; each runs its peer beside us and prints a ratio."""
