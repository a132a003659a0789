"""``spacy``: the named entities of a text, from an installed model of spaCy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trustassay.backends.registry import scheme
from trustassay.capabilities import Entity
from trustassay.errors import BackendError

MODEL = "en_core_web_sm"


@scheme("spacy", kind="linker", form="spacy[:MODEL]", needs={"spacy": "spacy"}, slow=True)
class SpacyLinker:
    """Named entities with their label (``PERSON``, ``GPE``, ...) in the place of an entry's id.

    Raises:
        BackendError: spaCy or the model is not installed, or the model finds no entities.
    """

    def __init__(self, model: str = MODEL) -> None:
        try:
            import spacy
        except ImportError as error:
            raise BackendError(f"spacy:{model} needs spaCy ({error}): pip install spacy") from None
        if not spacy.util.is_package(model):
            raise BackendError(f"spacy:{model}: no such model is installed as a package")
        self._read: Any = spacy.load(model)
        if "ner" not in self._read.pipe_names:
            raise BackendError(f"spacy:{model} finds no entities; expected a model with 'ner'")
        version = f"{self._read.meta['version']}+{spacy.__version__}"
        self.name = f"spacy:{model}-{version}"

    def link(self, texts: Sequence[str]) -> list[list[Entity]]:
        """Return the named entities of each text in reading order."""
        return [
            [
                Entity(one.label_, one.text, one.start_char, one.end_char, {"label": one.label_})
                for one in read.ents
            ]
            for read in self._read.pipe(texts)
        ]
