"""Operators of the category 'element_wise'."""
