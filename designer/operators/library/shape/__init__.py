"""Operators of the category 'shape'."""
