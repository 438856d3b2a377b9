"""Host kernels over batches of events: what both engines share, state, the embedded engine."""
