"""Define what an event, a schema, a position in a log and a clock are; every room builds on it."""
