"""Operators of the category 'normalisation'."""
