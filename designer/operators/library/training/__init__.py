"""Operators of the category 'training'."""
