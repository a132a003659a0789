"""The metric ``faithfulness`` as a user runs it, before and after a change of how answers are read.

Four measurements: answers with human labels (:mod:`~lab.benchmarks.claims.labelled`), replies that
say nothing (:mod:`~lab.benchmarks.claims.empty_replies`), answers with planted errors
(:mod:`~lab.benchmarks.claims.planted_errors`) and the time by length
(:mod:`~lab.benchmarks.claims.speed`). Each stores one row per answer in a file of JSON lines, so
that two versions of the program can be compared answer by answer.
"""
