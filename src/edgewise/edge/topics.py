"""The topic tree: paths, values, selectors. Pure."""
