"""Schemes of backends that the papers need: DBpedia, its Spotlight, spaCy, word2vec files."""
