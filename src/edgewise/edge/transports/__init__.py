"""Move bytes between clients and sessions: WebSocket, event stream, long poll."""
