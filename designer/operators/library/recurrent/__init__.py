"""Operators of the category 'recurrent'."""
