"""The loop that runs metrics over samples: fast, resumable, and never asking twice."""
