"""One run: samples taken in, filled by stages, scored, and written into a folder."""
