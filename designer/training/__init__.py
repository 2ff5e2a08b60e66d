"""Training runs: records, progress, resume."""
