"""The backends that metrics use, one file each; ``resolve`` turns a URI into a backend."""

DEFAULT_ENTAILER = "embedded"
DEFAULT_EMBEDDER = "embedded"
DEFAULT_SIMILARITY = "cosine"
DEFAULT_SOURCES = "embedding,pos"
"""Sources of distractors."""
