"""Turns a shipped entailer back into weights to train from: ``python -m lab.training.thaw OUT``.

The graph's int8 matrices times their scales are the weights it was exported from, to within half
a step of 1/64 of the largest value of each column. The word table is the original encoder's own.
"""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path

import numpy as np
import onnx
import torch
from numpy.typing import NDArray
from onnx import numpy_helper
from safetensors.torch import save_file

from lab.training.model import LAYERS, CrossEncoder

__all__ = ["thaw"]

SHIPPED = Path("src/trustassay/backends/weights")
LAYER = (
    "attention.self.query",
    "attention.self.key",
    "attention.self.value",
    "attention.output.dense",
    "intermediate.dense",
    "output.dense",
)
"""Matrices of one layer, in the order in which the export numbers them."""


def thaw(folder: Path) -> CrossEncoder:
    """Return the cross-encoder of ``folder``/entailer.onnx; ValueError when a weight is missing."""
    graph = onnx.load(str(folder / "entailer.onnx")).graph
    found = {i.name: numpy_helper.to_array(i) for i in graph.initializer}
    numbers = sorted(
        int(match.group(1))
        for name in found
        if (match := re.fullmatch(r"onnx::MatMul_(\d+)_quantized", name))
    )
    layers, left = divmod(len(numbers), len(LAYER))
    model = CrossEncoder(layers=max(layers, LAYERS))
    state = model.state_dict()
    known = {name: value for name, value in found.items() if name in state}
    known |= _named(found, state)
    for place, number in enumerate(numbers):
        name = f"bert.encoder.layer.{place // len(LAYER)}.{LAYER[place % len(LAYER)]}.weight"
        known[name] = _floats(found, f"onnx::MatMul_{number}").T
    missing = set(state) - set(known) - {"bert.embeddings.word_embeddings.weight"}
    if missing or left or layers < LAYERS:
        raise ValueError(f"{folder} has no weights for {sorted(missing)[:5]}")
    for name, value in known.items():
        state[name] = torch.tensor(np.ascontiguousarray(value), dtype=torch.float32)
    model.load_state_dict(state)
    return model


def _named(
    found: dict[str, NDArray[np.generic]], state: dict[str, torch.Tensor]
) -> dict[str, NDArray[np.float32]]:
    """Return the int8 weights that kept their names; the head's matrices are stored transposed."""
    made = {}
    for name, value in state.items():
        if f"{name}_quantized" in found:
            floats = _floats(found, name)
            made[name] = floats if floats.shape == tuple(value.shape) else floats.T
    return made


def _floats(found: dict[str, NDArray[np.generic]], name: str) -> NDArray[np.float32]:
    steps = found[f"{name}_quantized"].astype(np.float32)
    zero = found[f"{name}_zero_point"].astype(np.float32)
    return (steps - zero) * found[f"{name}_scale"].astype(np.float32)


def main() -> None:
    """Write weights that ``lab.training.train --start`` takes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--folder", type=Path, default=SHIPPED)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    model = thaw(args.folder)
    save_file(
        {k: v.contiguous() for k, v in model.state_dict().items()}, args.out / "model.safetensors"
    )
    version = json.loads((args.folder / "entailer.json").read_text())["version"]
    note = {"step": 0, "steps": 0, "thawed": version, "options": {"head": "segments"}}
    (args.out / "run.json").write_text(json.dumps(note, indent=1) + "\n")


if __name__ == "__main__":
    main()
