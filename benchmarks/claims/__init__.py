"""The metric ``faithfulness`` as a user runs it, before and after a change of how answers are read.

Four measurements: answers with human labels (:mod:`~benchmarks.claims.labelled`), replies that say
nothing (:mod:`~benchmarks.claims.empty_replies`), answers with planted errors
(:mod:`~benchmarks.claims.planted_errors`) and the time by length
(:mod:`~benchmarks.claims.speed`). Each stores one row per answer in a file of JSON lines, so that
two versions of the program can be compared answer by answer.
"""
