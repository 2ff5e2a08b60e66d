"""Operators of the category 'activation'."""
