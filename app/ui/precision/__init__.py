"""Variants of a network and their number formats in the window."""
