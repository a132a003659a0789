"""A passage and what is said of it, for the tests of all tools."""

PASSAGE = "The stone bridge over the river was opened in 1911. It has seven arches."
SUPPORTED = "The stone bridge was opened in 1911."
NOT_SUPPORTED = "It has nine arches."
REFUSAL = "I do not know."


class Unlucky:
    """An entailer that fails where it reads of nine arches."""

    name = "unlucky/1"

    def __repr__(self) -> str:
        return "Unlucky(key='sk-secret')"

    def scores(self, pairs):
        import numpy as np

        if any("nine" in hypothesis for _, hypothesis in pairs):
            raise RuntimeError("unlucky")
        return np.array([[1.0, 0.0, 0.0]] * len(pairs))
