"""Operators of the category 'linear'."""
