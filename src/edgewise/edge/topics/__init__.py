"""Hold the topic tree, and what a change of a topic is."""
