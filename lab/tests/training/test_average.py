"""Means of weights: of runs that share their beginning alone."""

import importlib.util
import json
from pathlib import Path

import pytest

MISSING = [n for n in ("safetensors", "torch") if importlib.util.find_spec(n) is None]


def _run(folder: Path, value: float, start: str) -> Path:
    import torch
    from safetensors.torch import save_file

    folder.mkdir()
    save_file({"w": torch.full((2,), value)}, folder / "model.safetensors")
    (folder / "run.json").write_text(json.dumps({"options": {"start": start}}))
    return folder


@pytest.mark.slow
@pytest.mark.torch
@pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}")
def test_means_of_trunk_and_run_and_of_two_runs(tmp_path: Path) -> None:
    from safetensors.torch import load_file

    from lab.training.average import average

    trunk = _run(tmp_path / "trunk", 0.0, "")
    one, two = (_run(tmp_path / f"run{n}", 4.0 * n, "elsewhere/trunk") for n in (1, 2))
    for first, second, share, expected in ((trunk, one, 0.75, 3.0), (one, two, 0.5, 6.0)):
        average(first, second, tmp_path / "out", share)
        found = load_file(tmp_path / "out" / "model.safetensors")["w"]
        assert found.tolist() == [expected] * 2
    alone = _run(tmp_path / "alone", 1.0, "")
    for first, second in ((trunk, alone), (alone, _run(tmp_path / "other", 1.0, "x"))):
        with pytest.raises(ValueError, match="goes back neither to"):
            average(first, second, tmp_path / "out", 0.5)
