"""Studies: the scores of runs compared with labels, with intervals, tests, baselines and costs."""
