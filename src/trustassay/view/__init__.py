"""``trustassay view``: one local page for all runs below a folder."""
