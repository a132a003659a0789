"""Two or more runs: what changed, whether one may replace the other, and which model is best."""
