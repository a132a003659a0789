"""Made-up worlds whose facts are known, passages that tell them, and statements about them.

facts      what can be true in a world, and what a statement can claim
truth      whether what a passage told supports, contradicts or does not state a claim
words      names, things and verbs
making     a world: people and things, and what happened to them
amounts    quantities, rules and groups in words
sentences  each fact and claim in words, in several ways
passages   told facts as prose, dialogue, lists, tables, messages
kinds      minimal pairs: for each kind of failure a supported claim and its near copy
pairs      labelled pairs, for training
"""
