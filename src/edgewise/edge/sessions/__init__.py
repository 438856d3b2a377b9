"""Keep what each client has subscribed to, and what waits for it."""
