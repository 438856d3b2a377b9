"""Runs a plan: `embedded` event at a time in process, `spark` as stream or batch."""
