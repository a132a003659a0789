"""How often the intervals that are printed hold the true value."""
