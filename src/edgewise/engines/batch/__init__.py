"""Run kernels over a micro-batch: read its rows, select them, run them, collect the output."""
