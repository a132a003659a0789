"""Passages for questions: corpora and a BM25 index."""
