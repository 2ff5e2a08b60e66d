"""Designing: layer palette, layer editor, code view, type checking, network settings."""
