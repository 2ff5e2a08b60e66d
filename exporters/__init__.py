"""Read a validated graph, write something."""
