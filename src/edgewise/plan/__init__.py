"""Define the typed logical plan: `lang` lowers into it, engines read only it."""
