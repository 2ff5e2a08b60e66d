"""Profiling: runs, their operators and utilisation."""
