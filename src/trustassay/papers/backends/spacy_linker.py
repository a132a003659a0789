"""``spacy``: the named entities of a text, from an installed spaCy model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trustassay.backends.registry import scheme
from trustassay.core.capabilities import Entity
from trustassay.errors import BackendError

MODEL = "en_core_web_sm"


@scheme("spacy", kind="linker", form="spacy[:MODEL]", needs={"spacy": "spacy"}, slow=True)
class SpacyLinker:
    """Finds named entities; their label (``PERSON``, ``GPE``, ...) replaces an entry's id.

    Raises:
        BackendError: spaCy or the model is not installed, or the model finds no entities.
    """

    def __init__(self, model: str = MODEL) -> None:
        try:
            import spacy
        except ImportError as error:
            raise BackendError(f"spacy:{model} needs spaCy ({error}): pip install spacy") from None
        if not spacy.util.is_package(model):
            raise BackendError(f"spacy:{model}: no package of this model is installed")
        self._pipeline: Any = spacy.load(model)
        # Some models only tag and parse.
        if "ner" not in self._pipeline.pipe_names:
            raise BackendError(f"spacy:{model} finds no entities; expected a model with 'ner'")
        # Models of the same name differ by version, and so do cached entities.
        version = f"{self._pipeline.meta['version']}+{spacy.__version__}"
        self.name = f"spacy:{model}-{version}"

    def link(self, texts: Sequence[str]) -> list[list[Entity]]:
        """Return the named entities of each text in reading order."""
        return [
            [
                Entity(
                    entity.label_,
                    entity.text,
                    entity.start_char,
                    entity.end_char,
                    {"label": entity.label_},
                )
                for entity in document.ents
            ]
            for document in self._pipeline.pipe(texts)
        ]
