"""Operators of the category 'normalization'."""
