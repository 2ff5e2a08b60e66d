"""Pages and tables about what was run: the tour, comparisons, analyses."""
