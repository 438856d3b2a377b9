"""SiddhiQL text to typed plan, with errors a person can act on."""
