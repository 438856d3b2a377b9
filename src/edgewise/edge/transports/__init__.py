"""How bytes reach a client: WebSocket first."""
