"""Windows, aggregates, patterns, joins: pure, snapshot-able, usable as a library of its own."""
