"""The machine is shared: a slow moment is not a failed example."""

from hypothesis import settings

settings.register_profile("engines", deadline=None)
settings.load_profile("engines")
