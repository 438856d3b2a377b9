"""Lower a syntax tree to a plan: resolve names, derive types, check every rule of the language."""
