"""Adds layers to trained weights: ``python -m lab.training.grow RUN OUT --after 3,5``.

A new layer stands after the layer of that number (from 1) and begins as its copy with both output
matrices at zero, and with the layer norms that leave the states below about as they are: so the
model says nearly what it said before, and training decides what the new layer does.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Collection, Mapping
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

__all__ = ["grow"]

_LAYER = re.compile(r"bert\.encoder\.layer\.(\d+)\.(.+)")
_NORMS = ("attention.output.LayerNorm", "output.LayerNorm")
_OUTPUTS = ("attention.output.dense", "output.dense")


def grow(state: Mapping[str, Tensor], after: Collection[int]) -> dict[str, Tensor]:
    """Return the weights with a new layer after each of these; ValueError if one is not there.

    States that leave a layer norm with weight g and bias b have about the mean of b, and the
    variance mean(g^2) + var(b). A layer norm with that mean and deviation gives them back.
    """
    layers: dict[int, dict[str, Tensor]] = {}
    made = {}
    for name, value in state.items():
        match = _LAYER.fullmatch(name)
        if match:
            layers.setdefault(int(match.group(1)), {})[match.group(2)] = value
        else:
            made[name] = value
    if missing := set(after) - {number + 1 for number in layers}:
        raise ValueError(f"there is no layer {min(missing)}; expected 1 to {len(layers)}")
    place = 0
    for number in sorted(layers):
        parts = [layers[number]]
        if number + 1 in after:
            parts.append(_new(layers[number]))
        for part in parts:
            made |= {f"bert.encoder.layer.{place}.{rest}": value for rest, value in part.items()}
            place += 1
    return made


def _new(below: Mapping[str, Tensor]) -> dict[str, Tensor]:
    made = {rest: value.clone() for rest, value in below.items()}
    weight, bias = (below[f"output.LayerNorm.{part}"] for part in ("weight", "bias"))
    deviation = (weight.square().mean() + bias.var(correction=0)).sqrt()
    for name in _NORMS:
        made[f"{name}.weight"] = torch.full_like(weight, float(deviation))
        made[f"{name}.bias"] = torch.full_like(bias, float(bias.mean()))
    for name in _OUTPUTS:
        made[f"{name}.weight"].zero_()
        made[f"{name}.bias"].zero_()
    return made


def main() -> None:
    """Write the grown weights and what they were grown from."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("run", "out"):
        parser.add_argument(name, type=Path)
    parser.add_argument("--after", default="3,5", help="numbers of layers, from 1")
    args = parser.parse_args()
    after = [int(number) for number in args.after.split(",")]
    args.out.mkdir(parents=True, exist_ok=True)
    state = grow(load_file(args.run / "model.safetensors"), after)
    save_file({k: v.contiguous() for k, v in state.items()}, args.out / "model.safetensors")
    begun = json.loads((args.run / "run.json").read_text())
    note = {"step": 0, "steps": 0, "new layers after": after, "began with": begun,
            "options": begun["options"]}  # fmt: skip
    (args.out / "run.json").write_text(json.dumps(note, indent=1) + "\n")


if __name__ == "__main__":
    main()
