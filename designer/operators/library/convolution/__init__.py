"""Operators of the category 'convolution'."""
