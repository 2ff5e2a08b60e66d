"""Operators that observe or disturb: they run in numpy between engine runs and vanish in deployment."""
