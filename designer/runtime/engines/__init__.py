"""Engines: each turns groups of layers into something that runs. `engine_registry.py` finds the descriptors in these files."""
