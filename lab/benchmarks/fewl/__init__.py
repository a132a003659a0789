"""FEWL's forms side by side on data with labels: ``lab/results/fewl-tables.md``."""
