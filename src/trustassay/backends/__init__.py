"""Who answers what metrics ask: one file a backend; ``resolve`` turns a URI into one."""

DEFAULT_ENTAILER = "embedded"
DEFAULT_EMBEDDER = "embedded"
DEFAULT_SIMILARITY = "cosine"
