"""Graph passes: rewritings of a deployed network that keep its function and save work."""
