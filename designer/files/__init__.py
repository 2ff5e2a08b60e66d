"""Documents, settings and weights on disk."""
