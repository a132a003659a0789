"""What is lost, asked again and wasted when an endpoint or a process fails.

Produces the table of ``benchmarks/results/reliability.md``;
see ``python -m benchmarks.reliability --help``.
"""
