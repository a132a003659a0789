"""What is lost, asked again and wasted when an endpoint or a process fails.

Produces the table of ``lab/results/reliability.md``;
see ``python -m lab.benchmarks.reliability --help``.
"""
