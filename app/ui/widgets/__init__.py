"""Shared widgets, theme, texts and background work."""
