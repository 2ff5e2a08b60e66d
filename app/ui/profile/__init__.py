"""Profiling panels: runs, operators and utilization."""
