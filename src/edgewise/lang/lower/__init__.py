"""Tree to plan: names resolved, types derived, every rule of the language checked on the way."""
