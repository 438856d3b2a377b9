"""The floor: what an event, a schema, a batch, a position and a clock are."""
