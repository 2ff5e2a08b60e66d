"""Operators of the category 'pooling'."""
