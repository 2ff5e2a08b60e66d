"""Operators of the category 'data'."""
