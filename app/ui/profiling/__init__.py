"""Profiling in the window: runs in the engine process, their records, tables and bars."""
