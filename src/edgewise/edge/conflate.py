"""At most one pending value per client and topic. Pure."""
