"""A small ball around the embeddings of what a user says.

In the last message, the user's, the embedding of each token is moved by a vector of its own, drawn
uniformly from the ball whose radius is ``embedding_radius`` times the mean length of these
embeddings. Tokens of a template, of the system and of the tokenizer stay as they are.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from trustassay.errors import BackendError
from trustassay.sample import clean

MARK = "\ue000\ue001\ue000"
"""Stands for what the user says, to see what a chat's layout puts around it."""


def user_tokens(tokenizer: Any, text: str, special: bool, layout: str) -> list[int]:
    """Return the places of the user's tokens in a prompt; :data:`MARK` is in its ``layout``.

    A token that also spells what is beside the user's text is one of them. Raises
    :class:`BackendError` if there is none, or a layout does not show where the text is.
    """
    text, (before, mark, after) = clean(text), clean(layout).partition(MARK)
    begin, end = len(before), len(text) - len(after)
    if not mark or text[:begin] != before or text[end:] != after:
        raise BackendError("its chat template does not show which tokens are the user's")
    how = {"add_special_tokens": special, "return_offsets_mapping": True, "verbose": False}
    spans = enumerate(tokenizer(text, **how)["offset_mapping"])
    # Some tokenizers give a token of white space a span of no width at its end.
    places = [i for i, (a, b) in spans if b > begin and (a < end or a == b == end)]
    if not places:
        raise BackendError("the user's text has no token whose embedding can be moved")
    return places


def unit_ball(rng: np.random.Generator, n: int, size: int) -> NDArray[np.float64]:
    """Return n vectors, shape (n, size), drawn uniformly from the ball of radius 1."""
    directions = rng.standard_normal((n, size))
    lengths = np.linalg.norm(directions, axis=1, keepdims=True)
    return np.asarray(directions / lengths * rng.random((n, 1)) ** (1 / size))


def moved(vectors: Any, radius: float, rng: np.random.Generator) -> Any:
    """Return embeddings, a tensor (n, size), moved in a ball relative to their mean length."""
    wide = vectors.float()
    ball = wide.new_tensor(unit_ball(rng, *vectors.shape))
    return (wide + radius * wide.norm(dim=-1).mean() * ball).to(vectors.dtype)
