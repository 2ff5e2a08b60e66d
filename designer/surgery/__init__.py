"""Edits of a network with trained weights: the weights follow the edit."""
