"""The commands, files and models of ``benchmarks.golden_outputs``."""
