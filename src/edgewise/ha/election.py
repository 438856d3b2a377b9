"""Who may write: leases and epochs, decided without a clock."""
