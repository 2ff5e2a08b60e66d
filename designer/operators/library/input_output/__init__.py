"""Operators of the category 'input_output'."""
