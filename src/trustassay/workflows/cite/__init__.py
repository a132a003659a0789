"""Post-hoc citation: the best supporting document of each sentence, written behind it."""

from trustassay.workflows.cite.answers import Cited, CiteOptions, cite
from trustassay.workflows.cite.placing import uncited, with_citations

__all__ = ["CiteOptions", "Cited", "cite", "uncited", "with_citations"]
