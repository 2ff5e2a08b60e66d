"""Operators of the category 'development'."""
