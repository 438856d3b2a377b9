"""The language server: what an editor asks about an app, and the process that answers."""
