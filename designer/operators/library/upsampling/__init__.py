"""Operators of the category 'upsampling'."""
