"""Operators of the category 'attention'."""
