"""From a change of a topic to the sessions that want it. Pure."""
