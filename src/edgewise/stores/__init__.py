"""Keep the rows of tables in databases: `@store(type=...)`."""
