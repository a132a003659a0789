"""The backends that metrics use: one file per backend; ``resolve`` turns a URI into one."""

DEFAULT_ENTAILER = "embedded"
DEFAULT_EMBEDDER = "embedded"
DEFAULT_SIMILARITY = "cosine"
DEFAULT_SOURCES = "embedding,pos"
"""Of distractors."""
OF_PAPERS = {
    "dbpedia": "distractors",
    "spotlight": "linker",
    "spacy": "linker",
    "word2vec": "distractors",
}
"""The schemes that come with the package of papers, and what they are for."""
