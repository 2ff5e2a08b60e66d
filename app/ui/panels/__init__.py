"""One file per dock window."""
