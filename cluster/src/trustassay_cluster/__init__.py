"""A run on many machines: its shards, the workers that score them, and where these keep them."""
