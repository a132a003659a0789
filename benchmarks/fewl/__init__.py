"""FEWL's forms side by side on data with labels: ``benchmarks/results/fewl-tables.md``."""
